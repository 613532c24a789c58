#include "net/replay/http_stream.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace net {
namespace {

namespace http = boost::beast::http;
using std::chrono::milliseconds;

constexpr double kLongestWaitMs = 3'600'000;

std::optional<milliseconds> read_wait(std::string_view text, double unit_ms) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !(value >= 0))
    return std::nullopt;
  return milliseconds(static_cast<int64_t>(std::min(value * unit_ms, kLongestWaitMs)));
}

// Seconds as HTTP has it, or milliseconds as OpenAI's clients know it. A date is not understood:
// the server is asked again after a second.
std::optional<milliseconds> retry_after(const http::response_header<>& head) {
  const auto text = [&](std::string_view name) {
    const auto value = head[{name.data(), name.size()}];
    return std::string_view(value.data(), value.size());
  };
  if (const auto exact = read_wait(text("retry-after-ms"), 1)) return exact;
  const std::string_view seconds = text("Retry-After");
  if (seconds.empty()) return std::nullopt;
  return read_wait(seconds, 1000).value_or(milliseconds(1000));
}

}  // namespace

HttpTarget find_target(const ServerAddress& address, const std::string& api_key,
                       milliseconds silence) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  boost::system::error_code failed;
  HttpTarget target{address, resolver.resolve(address.host, address.port, failed), api_key,
                    silence};
  if (failed)
    throw std::runtime_error(address.url() + ": the host is not known: " + failed.message());
  return target;
}

void HttpStream::allow_time() {
  stream_.expires_at(std::min(deadline_, std::chrono::steady_clock::now() + target_.silence));
}

asio::awaitable<HttpHead> HttpStream::ask(const HttpAsk& ask) {
  allow_time();
  co_await stream_.async_connect(target_.endpoints, asio::use_awaitable);
  stream_.socket().set_option(asio::ip::tcp::no_delay(true));
  http::request<http::string_body> request{ask.body.empty() ? http::verb::get : http::verb::post,
                                           target_.address.prefix + ask.path, 11};
  request.set(http::field::host, target_.address.host_field());
  request.set(http::field::connection, "close");
  if (!target_.api_key.empty())
    request.set(http::field::authorization, "Bearer " + target_.api_key);
  if (!ask.body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = ask.body;
    request.prepare_payload();
  }
  allow_time();
  co_await http::async_write(stream_, request, asio::use_awaitable);
  do {  // interim answers (1xx) are passed over
    parser_.emplace();
    parser_->body_limit(boost::none);
    allow_time();
    co_await http::async_read_header(stream_, buffer_, *parser_, asio::use_awaitable);
  } while (parser_->get().result_int() / 100 == 1);
  // It parses one piece at a time: what has arrived is told before more is waited for.
  co_return HttpHead{parser_->get().result_int(), retry_after(parser_->get().base())};
}

asio::awaitable<std::string> HttpStream::more() {
  std::string& body = parser_->get().body();  // it grows by what is read
  while (body.empty() && !parser_->is_done()) {
    allow_time();
    co_await http::async_read_some(stream_, buffer_, *parser_, asio::use_awaitable);
  }
  co_return std::exchange(body, {});
}

asio::awaitable<HttpReply> fetch(const HttpTarget& target, HttpAsk ask,
                                 HttpStream::TimePoint deadline) {
  HttpStream stream(co_await asio::this_coro::executor, target, deadline);
  HttpReply reply;
  reply.status = (co_await stream.ask(ask)).status;
  for (std::string piece = co_await stream.more(); !piece.empty(); piece = co_await stream.more())
    reply.body += piece;
  co_return reply;
}

}  // namespace net
