#include "net/request_reader.hpp"

#include <boost/beast/core/string.hpp>

#include "runtime/trace.hpp"

namespace net {
namespace {

namespace http = boost::beast::http;
using ReadStatus = ClientSocket::ReadStatus;

constexpr size_t kHeaderReadBytes = 4096;
constexpr size_t kBodyReadBytes = size_t{64} << 10;
constexpr std::string_view kLineEnd = "\r\n";

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string text(std::chrono::milliseconds duration) {
  return std::to_string(duration.count()) + " ms";
}

}  // namespace

RequestReader::RequestReader(ClientSocket& socket, const HttpLimits& limits)
    : socket_(socket), limits_(limits) {
  parser_.header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser_.body_limit(limits.body_bytes);
}

bool RequestReader::refuse(unsigned status, std::string message, std::string param) {
  refusal_ =
      error_response(kernels::invalid(std::move(message), std::move(param)), status, limits_);
  return false;
}

bool RequestReader::refuse(const boost::system::error_code& error) {
  if (error == http::error::body_limit) {
    return refuse(413, "the body is larger than the limit of " +
                           std::to_string(limits_.body_bytes) + " bytes");
  }
  if (error == http::error::header_limit) {
    return refuse(431, "the request header is larger than the limit of " +
                           std::to_string(limits_.header_bytes) + " bytes");
  }
  return refuse(400, "malformed HTTP request: " + error.message());
}

bool RequestReader::put(boost::system::error_code& error) {
  const std::string_view input = socket_.input();
  if (input.empty()) return true;
  const bool in_header = !parser_.is_header_done();
  const size_t used = parser_.put(asio::buffer(input), error);
  socket_.consume(used);
  if (in_header) header_bytes_ += used;
  if (error == http::error::need_more) error = {};
  if (!error && in_header && !parser_.is_header_done() &&
      header_bytes_ + socket_.input().size() > limits_.header_bytes) {
    error = http::error::header_limit;
  }
  if (error) return refuse(error);
  return in_header || parser_.is_done() || check_framing(used);
}

// The parser counts what a body holds; what chunks wrap around it has no limit there: it asks for
// more of an unfinished line for as long as one comes.
bool RequestReader::check_framing(size_t used) {
  body_bytes_ += used;
  const std::string_view rest = socket_.input();
  if (rest.size() > limits_.header_bytes) {
    const std::string limit = std::to_string(limits_.header_bytes) + " bytes";
    const size_t line = rest.substr(0, 2) == kLineEnd ? 2 : 0;  // ends the chunk before
    // Only the last chunk's line stays unparsed when it is complete: its trailers are not.
    if (rest.find(kLineEnd, line) != std::string_view::npos) {
      return refuse(431, "the trailer fields are larger than the limit of " + limit);
    }
    return refuse(400, "malformed HTTP request: a chunk's size line is longer than " + limit);
  }
  // As much framing as content, and the room of a header for small bodies.
  const size_t wire_bytes_max = 2 * limits_.body_bytes + limits_.header_bytes;
  if (body_bytes_ + rest.size() <= wire_bytes_max) return true;
  return refuse(413, "the body and its chunk framing are larger than the limit of " +
                         std::to_string(wire_bytes_max) + " bytes");
}

asio::awaitable<bool> RequestReader::read_header() {
  TimePoint deadline = after(limits_.idle_timeout);
  bool begun = false;
  while (!parser_.is_header_done()) {
    // An empty line before a request is tolerated (RFC 9112, 2.2): some clients end a body with
    // one.
    while (!begun && socket_.input().substr(0, 2) == kLineEnd) socket_.consume(2);
    if (!begun && !socket_.input().empty()) {
      begun = true;
      deadline = after(limits_.header_timeout);
    }
    boost::system::error_code error;
    if (!put(error)) co_return false;
    if (parser_.is_header_done()) break;
    const ReadStatus status = co_await socket_.more(kHeaderReadBytes, deadline);
    if (status == ReadStatus::kClosed) co_return false;
    if (status == ReadStatus::kTimeout) {
      if (begun) refuse(408, "the request header took longer than " + text(limits_.header_timeout));
      co_return false;
    }
  }
  co_return check_header();
}

bool RequestReader::check_header() {
  const auto& request = parser_.get();
  const auto coding = header(http::field::transfer_encoding);
  if (!coding.empty() && (!parser_.chunked() || !http11())) {
    return refuse(400,
                  "Transfer-Encoding must be absent or \"chunked\" (HTTP/1.1), got \"" +
                      std::string(coding) + "\"",
                  "Transfer-Encoding");
  }
  const auto hosts = request.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && http11())) {
    return refuse(400, "exactly one Host header is required, got " + std::to_string(hosts), "Host");
  }
  const std::string_view target = path();
  if (target.empty() || (target.front() != '/' && target != "*")) {
    return refuse(400, "the request target must begin with '/'");
  }
  const auto encoding = header(http::field::content_encoding);
  if (!encoding.empty() && !boost::beast::iequals({encoding.data(), encoding.size()}, "identity")) {
    return refuse(415,
                  "Content-Encoding \"" + std::string(encoding) +
                      "\" is not supported: send the body as it is",
                  "Content-Encoding");
  }
  const auto expect = header(http::field::expect);
  if (!expect.empty()) {
    if (!boost::beast::iequals({expect.data(), expect.size()}, "100-continue")) {
      return refuse(417, "Expect must be absent or \"100-continue\"", "Expect");
    }
    expects_continue_ = http11();
  }
  return true;
}

bool RequestReader::complete() {
  read_ns_ = runtime::Trace::global().now_ns();
  return true;
}

asio::awaitable<bool> RequestReader::read_request() {
  if (parser_.is_done()) co_return complete();
  if (expects_continue_ && socket_.input().empty()) {
    const bool sent = co_await socket_.write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!sent) co_return false;
  }
  const TimePoint deadline = after(limits_.body_timeout);
  parser_.eager(true);
  for (;;) {
    boost::system::error_code error;
    if (!put(error)) co_return false;
    if (parser_.is_done()) co_return complete();
    const ReadStatus status = co_await socket_.more(kBodyReadBytes, deadline);
    if (status == ReadStatus::kClosed) co_return false;
    if (status == ReadStatus::kTimeout) {
      co_return refuse(408, "the request body took longer than " + text(limits_.body_timeout));
    }
  }
}

std::string_view RequestReader::method() const { return view(parser_.get().method_string()); }

std::string_view RequestReader::path() const {
  auto target = view(parser_.get().target());
  constexpr std::string_view kScheme = "http://";  // absolute form, as sent to proxies
  if (target.substr(0, kScheme.size()) == kScheme) {
    const size_t slash = target.find('/', kScheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find_first_of("?#"));
}

std::string_view RequestReader::header(http::field name) const { return view(parser_.get()[name]); }

bool RequestReader::http11() const { return parser_.get().version() == 11; }

bool RequestReader::keep_alive() const { return parser_.get().keep_alive(); }

}  // namespace net
