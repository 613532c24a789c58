#include "net/replay/live_client.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>

#include "net/replay/event_reader.hpp"

namespace net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kUntoldWait{1000};  // where the server does not say how long
constexpr size_t kComplaintBytesMax = size_t{64} << 10, kComplaintShown = 120;

void fail(LivePlay& play, std::string why) {
  play.record.end = PlayEnd::kFailed;
  play.error = std::move(why);
}

bool asks_to_wait(const HttpHead& head) {
  return head.status == 429 || (head.status == 503 && head.retry_after.has_value());
}

// ": " and what the server says of an error, its first line; empty where it says nothing.
asio::awaitable<std::string> complaint(HttpStream& stream) {
  std::string body;
  for (std::string piece = co_await stream.more(); !piece.empty(); piece = co_await stream.more())
    if (body.size() < kComplaintBytesMax) body += piece;
  std::string said = body.empty() || body.front() != '{' ? "" : read_answer_event(body).error;
  said = said.substr(0, std::min(said.find('\n'), kComplaintShown));
  co_return said.empty() ? said : ": " + said;
}

// Before an answer was whole, the connection ended.
bool is_cut(const boost::system::error_code& code) {
  namespace http = boost::beast::http;
  return code == http::error::partial_message || code == http::error::end_of_stream ||
         code == asio::error::eof || code == asio::error::connection_reset ||
         code == asio::error::broken_pipe;
}

void take_usage(const TokenUsage& usage, PlayRecord& record) {
  record.prompt_tokens = usage.prompt_tokens;
  record.output_tokens = usage.output_tokens;
  record.state_hit = std::min(usage.cached_tokens, usage.prompt_tokens);
}

}  // namespace

HttpStream::TimePoint LiveClient::deadline(const LivePlay& play) const {
  return play.deadline_ns == 0 ? HttpStream::TimePoint::max() : clock_.at(play.deadline_ns);
}

asio::awaitable<void> LiveClient::play(const HttpAsk& ask, LivePlay& play,
                                       const Heard& heard) const {
  for (;;) {
    const Try result = co_await once(ask, play, heard);
    if (!result.again) co_return;
    const auto next = HttpStream::TimePoint::clock::now() + result.wait;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(std::min(next, deadline(play)));
    co_await timer.async_wait(asio::use_awaitable);
    if (next >= deadline(play)) {
      play.record.end = PlayEnd::kTimedOut;
      co_return;
    }
    ++play.retries;
  }
}

asio::awaitable<LiveClient::Try> LiveClient::once(const HttpAsk& ask, LivePlay& play,
                                                  const Heard& heard) const {
  try {
    HttpStream stream(co_await asio::this_coro::executor, target_, deadline(play));
    const HttpHead head = co_await stream.ask(ask);
    if (head.status == 200) {
      co_await listen(stream, play, heard);
    } else if (asks_to_wait(head) && play.retries < retries_max_) {
      co_return Try{true, head.retry_after.value_or(kUntoldWait)};
    } else {
      const std::string said = co_await complaint(stream);
      fail(play, "status " + std::to_string(head.status) + said);
    }
  } catch (const boost::system::system_error& broken) {
    const bool late = broken.code() == boost::beast::error::timeout;
    if (late && HttpStream::TimePoint::clock::now() >= deadline(play)) {
      play.record.end = PlayEnd::kTimedOut;
    } else if (late) {
      fail(play, "silence");
    } else {
      fail(play, is_cut(broken.code()) ? "cut off" : broken.code().message());
    }
  }
  co_return Try{};
}

asio::awaitable<void> LiveClient::listen(HttpStream& stream, LivePlay& play,
                                         const Heard& heard) const {
  EventReader events;
  bool finished = false;
  for (;;) {
    const std::string piece = co_await stream.more();
    const uint64_t now_ns = clock_.now_ns();
    if (piece.empty()) break;
    events.push(piece);
    while (const auto data = events.next()) {
      const AnswerEvent event = read_answer_event(*data);
      if (!event.error.empty()) co_return fail(play, event.error);
      if (event.token) heard(play.record, now_ns);
      if (play.leaves_after != 0 && play.record.output_tokens >= play.leaves_after) {
        play.record.end = PlayEnd::kLeft;
        co_return;
      }
      if (event.usage) take_usage(*event.usage, play.record);
      if (event.done) co_return;
      finished = finished || event.finished;
    }
  }
  if (!finished) fail(play, "cut off");
}

}  // namespace net
