// What is asked of an HTTP server.
#pragma once

#include <string>

namespace net {

struct HttpAsk {
  std::string path;
  std::string body;  // JSON, by POST; empty: GET
};

}  // namespace net
