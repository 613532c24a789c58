// One HTTP request over a connection of its own, whose answer is taken as it arrives. Only the
// coroutines of one io context use it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "net/replay/http_ask.hpp"
#include "net/replay/server_address.hpp"

namespace net {

namespace asio = boost::asio;

// A server found and how one speaks to it.
struct HttpTarget {
  ServerAddress address;
  asio::ip::tcp::resolver::results_type endpoints;
  std::string api_key;                         // empty: none is sent
  std::chrono::milliseconds silence{600'000};  // longer without a byte: it has failed
};

// Throws std::runtime_error when the host is not known.
HttpTarget find_target(const ServerAddress& address, const std::string& api_key,
                       std::chrono::milliseconds silence);

struct HttpHead {
  unsigned status = 0;
  // What the server asks to wait before the next try.
  std::optional<std::chrono::milliseconds> retry_after;
};

class HttpStream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `target` must outlive it. Nothing takes longer than to the `deadline`.
  HttpStream(const asio::any_io_executor& executor, const HttpTarget& target, TimePoint deadline)
      : target_(target), stream_(executor), deadline_(deadline) {}

  // Both throw boost::system::system_error: beast::error::timeout for the deadline and for silence.
  asio::awaitable<HttpHead> ask(const HttpAsk& ask);
  // Some bytes of the body, without what frames them; empty when it has ended.
  asio::awaitable<std::string> more();

 private:
  void allow_time();

  const HttpTarget& target_;
  boost::beast::tcp_stream stream_;
  TimePoint deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
};

// A whole answer. Throws as HttpStream does.
asio::awaitable<HttpReply> fetch(const HttpTarget& target, HttpAsk ask,
                                 HttpStream::TimePoint deadline);

}  // namespace net
