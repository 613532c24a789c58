#include "net/response.hpp"

#include <boost/beast/http/status.hpp>
#include <ctime>

#include "net/openai_api.hpp"

namespace net {
namespace {

constexpr size_t kHeaderValueMax = 256;

// A value from elsewhere must not end its header line.
std::string header_value(std::string_view text) {
  std::string value;
  for (const char c : text.substr(0, kHeaderValueMax)) {
    if (c > 0x20 && c < 0x7f) value.push_back(c);
  }
  return value;
}

// IMF-fixdate, as RFC 9110 wants it, whatever the locale.
std::string http_date() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[utc.tm_wday],
                utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                utc.tm_sec);
  return text;
}

void append_header(std::string& wire, std::string_view name, std::string_view value) {
  wire.append(name).append(": ").append(value).append("\r\n");
}

std::string status_and_common_headers(unsigned status, const Reply& reply, bool keep_alive) {
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(status));
  std::string wire = "HTTP/1.1 " + std::to_string(status) + " ";
  wire.append(reason.data(), reason.size()).append("\r\n");
  append_header(wire, "Date", http_date());
  append_header(wire, "Server", "sluice");
  append_header(wire, "Connection", keep_alive ? "keep-alive" : "close");
  const std::string id = header_value(reply.request_id);
  if (!id.empty()) append_header(wire, "x-request-id", id);
  return wire;
}

}  // namespace

Response error_response(const kernels::Error& error, const HttpLimits& limits) {
  return error_response(error, http_status(error.code), limits);
}

Response error_response(const kernels::Error& error, unsigned status, const HttpLimits& limits) {
  Response response;
  response.status = status;
  response.body = error_json(error, status);
  if (status == 429 || status == 503) {
    const auto wait_ms = limits.retry_after.count();
    response.headers.emplace_back("Retry-After",
                                  std::to_string((wait_ms + 999) / 1000));  // seconds
    response.headers.emplace_back("retry-after-ms", std::to_string(wait_ms));
  }
  // Clients retry these on their own; the same request would only meet the same end again.
  if (status == 408 || status == 500) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

std::string to_wire(const Response& response, const Reply& reply) {
  std::string wire = status_and_common_headers(response.status, reply, reply.keep_alive);
  for (const auto& [name, value] : response.headers) append_header(wire, name, value);
  const bool may_have_body = response.status != 204;
  if (may_have_body) {
    append_header(wire, "Content-Type", response.content_type);
    append_header(wire, "Content-Length", std::to_string(response.body.size()));
  }
  wire.append("\r\n");
  if (may_have_body && !reply.head_only) wire.append(response.body);
  return wire;
}

std::string stream_head(const Reply& reply) {
  std::string wire = status_and_common_headers(200, reply, reply.keep_alive && reply.http11);
  append_header(wire, "Content-Type", "text/event-stream; charset=utf-8");
  append_header(wire, "Cache-Control", "no-cache");
  append_header(wire, "X-Accel-Buffering", "no");  // nginx would hold tokens back
  if (reply.http11) append_header(wire, "Transfer-Encoding", "chunked");
  wire.append("\r\n");
  return wire;
}

}  // namespace net
