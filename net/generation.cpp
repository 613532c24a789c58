#include "net/generation.hpp"

#include <algorithm>

#include "net/event_stream.hpp"
#include "net/helper_call.hpp"
#include "net/send_response.hpp"
#include "net/server_state.hpp"
#include "runtime/trace.hpp"

namespace net {

using kernels::Error;
using kernels::ErrorCode;

namespace {

// Prompt positions in one event; more are written on the helper thread (a position with its 20
// alternatives costs about 10 us).
constexpr size_t kPositionsMax = 256;

bool is_heavy(const std::vector<actors::SinkEvent>& events) {
  return std::any_of(events.begin(), events.end(), [](const actors::SinkEvent& event) {
    const auto* delta = std::get_if<actors::Delta>(&event);
    return delta != nullptr && delta->prompt_logprobs.size() > kPositionsMax;
  });
}

}  // namespace

// The engine's side of a running generation. Invariant: when it ends, the request has ended or was
// aborted, and no later event reaches the connection.
class Generation::Ticket {
 public:
  Ticket(actors::Service& service, runtime::RequestId request, std::shared_ptr<TokenQueue> queue,
         ClientSocket& socket, ClientSocket::HalfClose half_close)
      : service_(service), request_(request), queue_(std::move(queue)), socket_(socket) {
    socket_.watch([this] { abort(); }, half_close);
  }
  ~Ticket() {
    socket_.unwatch();
    abort();
    queue_->close();
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  void abort() {
    if (!ended_) service_.abort(request_);
    ended_ = true;
  }
  void ended() { ended_ = true; }  // the engine said so: Done or Failed
  TokenQueue& queue() { return *queue_; }

 private:
  actors::Service& service_;
  const runtime::RequestId request_;
  const std::shared_ptr<TokenQueue> queue_;
  ClientSocket& socket_;
  bool ended_ = false;
};

asio::awaitable<bool> Generation::run(ParsedRequest parsed, Reply reply, GenerationTerms terms,
                                      ArrivalTimes times) {
  reply_ = std::move(reply);
  terms_ = std::move(terms);
  if (context_.draining) {
    const Error closing = unavailable(state_of(context_));
    co_return co_await fail(closing);
  }
  answer_ = std::move(parsed.answer);
  stream_ = parsed.stream;
  auto queue = std::make_shared<TokenQueue>(context_.config.limits.queue_bytes, socket_.waker());
  const auto request = context_.service.submit(
      std::move(parsed.generate),
      [queue](actors::SinkEvent event) { return queue->push(std::move(event)); });
  if (!request) co_return co_await fail(request.error());
  request_ = *request;
  Ticket ticket(
      context_.service, request_, std::move(queue), socket_,
      stream_ ? ClientSocket::HalfClose::kGone : ClientSocket::half_close_of_whole(reply_.http11));
  if (runtime::Trace::global().enabled()) {
    runtime::Trace::global().record_at(request_, "net.read_request", times.read_ns);
    runtime::Trace::global().record_at(request_, "net.parse", times.parse_ns);
  }
  co_return co_await carry(ticket);
}

asio::awaitable<bool> Generation::carry(Ticket& ticket) {
  for (;;) {
    if (socket_.gone()) co_return false;  // the ticket aborts
    const uint64_t pushed_ns = socket_.stopped() ? 0 : ticket.queue().drain(events_);
    if (socket_.stopped() || events_.empty()) {
      if (wait_is_over(ticket)) co_return co_await fail(failure_);
      co_await socket_.pause(terms_.deadline);
      continue;
    }
    if (pushed_ns != 0) runtime::Trace::global().record_at(request_, "net.push", pushed_ns);

    Progress progress = Progress::kGoing;
    const bool ran =
        co_await run_call(context_, socket_, is_heavy(events_),
                          [&](const runtime::KeepGoing&) { progress = take_events(); });
    if (!ran) continue;  // stopped or gone
    if (progress != Progress::kGoing) ticket.ended();
    if (progress == Progress::kFailed) co_return co_await fail(failure_);
    if (stream_) {
      append_to_wire(progress);
      const bool written = co_await socket_.write(wire_);
      if (!written) co_return false;
      if (progress == Progress::kDone) co_return reply_.http11&& reply_.keep_alive;
    } else if (progress == Progress::kDone) {
      socket_.unwatch();
      Response response;
      response.body = answer_->body();
      co_return co_await send_response(response, reply_, socket_, context_.counters);
    }
  }
}

bool Generation::wait_is_over(Ticket& ticket) {
  if (socket_.stopped()) {
    failure_ = unavailable(state_of(context_));
  } else if (ticket.queue().overflowed()) {
    failure_ = {
        ErrorCode::kCancelled, "the client reads too slowly: too many tokens wait for it", {}};
  } else if (std::chrono::steady_clock::now() >= terms_.deadline) {
    failure_ = {ErrorCode::kTimeout, "the engine gave no token in time", {}};
  } else {
    return false;
  }
  return true;
}

Generation::Progress Generation::take_events() {
  payloads_.clear();
  for (const auto& event : events_) {
    if (const auto* failed = std::get_if<actors::Failed>(&event)) {
      failure_ = failed->error;
      return Progress::kFailed;
    }
    if (stream_) {
      answer_->stream(event, payloads_);
    } else {
      answer_->collect(event);
    }
    if (std::holds_alternative<actors::Done>(event)) return Progress::kDone;
  }
  return Progress::kGoing;
}

void Generation::append_to_wire(Progress progress) {
  wire_.clear();
  if (!head_sent_) {
    wire_ = stream_head(reply_);
    head_sent_ = true;
    context_.counters.count(200);
  }
  append_events(payloads_, reply_.http11, wire_);
  if (progress == Progress::kDone) append_stream_end(reply_.http11, wire_);
}

asio::awaitable<bool> Generation::fail(const Error& error) {
  if (!head_sent_) {
    const Response response = terms_.refusal(error);
    co_return co_await send_response(response, reply_, socket_, context_.counters);
  }
  const actors::SinkEvent event = actors::Failed{error};
  answer_->stream(event, payloads_);  // after what came before it in the same burst
  wire_.clear();
  append_events(payloads_, reply_.http11, wire_);
  append_stream_end(reply_.http11, wire_);
  co_await socket_.write(wire_);
  co_return false;
}

}  // namespace net
