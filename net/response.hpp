// One whole HTTP answer as a value, and the bytes it becomes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"
#include "net/http_limits.hpp"

namespace net {

struct Response {
  unsigned status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};

// What the request asked of any answer to it.
struct Reply {
  bool http11 = true;      // 1.0: no chunks
  bool keep_alive = true;  // false: the connection closes after the answer
  bool head_only = false;  // HEAD: the header of the answer GET would give
  std::string request_id;  // x-request-id
};

// In OpenAI's error shape, with the status that belongs to the code; 429 and 503 tell when to come
// back.
Response error_response(const kernels::Error& error, const HttpLimits& limits);
Response error_response(const kernels::Error& error, unsigned status, const HttpLimits& limits);

std::string to_wire(const Response& response, const Reply& reply);

// The header of a streamed answer, whose body follows as server-sent events.
std::string stream_head(const Reply& reply);

}  // namespace net
