#include "net/generation.hpp"

#include "net/event_stream.hpp"
#include "runtime/trace.hpp"

namespace net {

using kernels::Error;
using kernels::ErrorCode;

// The engine's side of a running generation. Invariant: when it ends, the request has ended or was
// aborted, and no later event reaches the connection.
class Generation::Ticket {
 public:
  Ticket(actors::Service& service, runtime::RequestId request, std::shared_ptr<TokenQueue> queue,
         ClientSocket& socket)
      : service_(service), request_(request), queue_(std::move(queue)), socket_(socket) {
    socket_.watch([this] { abort(); });
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

Generation::Generation(ServerContext& context, ClientSocket& socket, const Reply& reply, bool probe)
    : context_(context), socket_(socket), reply_(reply), probe_(probe) {}

asio::awaitable<bool> Generation::run(ParsedRequest parsed, ArrivalTimes times) {
  if (context_.draining) {
    const Error closing{ErrorCode::kUnavailable, "the server is shutting down", {}};
    co_return co_await fail(closing);
  }
  answer_ = std::move(parsed.answer);
  stream_ = parsed.stream;
  auto queue = std::make_shared<TokenQueue>(context_.config.limits.queue_events, socket_.waker());
  const auto request = context_.service.submit(
      std::move(parsed.generate),
      [queue](actors::SinkEvent event) { return queue->push(std::move(event)); });
  if (!request) co_return co_await fail(request.error());
  request_ = *request;
  Ticket ticket(context_.service, request_, std::move(queue), socket_);
  if (runtime::Trace::global().enabled()) {
    runtime::Trace::global().record_at(request_, "net.read_request", times.read_ns);
    runtime::Trace::global().record_at(request_, "net.parse", times.parse_ns);
  }
  co_return co_await carry(ticket);
}

asio::awaitable<bool> Generation::carry(Ticket& ticket) {
  const TimePoint deadline =
      probe_ ? after(context_.config.limits.health_generate_timeout) : TimePoint::max();
  std::vector<actors::SinkEvent> events;
  for (;;) {
    if (socket_.gone()) co_return false;  // the ticket aborts
    if (socket_.stopped()) {
      failure_ = {ErrorCode::kUnavailable, "the server is shutting down", {}};
      co_return co_await fail(failure_);
    }
    ticket.queue().drain(events);
    if (events.empty()) {
      if (ticket.queue().overflowed()) {
        failure_ = {
            ErrorCode::kCancelled, "the client reads too slowly: too many tokens wait for it", {}};
        co_return co_await fail(failure_);
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        failure_ = {ErrorCode::kTimeout, "the engine gave no token in time", {}};
        co_return co_await fail(failure_);
      }
      co_await socket_.pause(deadline);
      continue;
    }

    Progress progress = Progress::kGoing;
    payloads_.clear();
    for (const auto& event : events) {
      progress = take(event);
      if (progress != Progress::kGoing) break;
    }
    if (progress != Progress::kGoing) ticket.ended();
    if (progress == Progress::kFailed) co_return co_await fail(failure_);
    if (stream_) {
      append_to_wire(progress);
      const bool written = co_await socket_.write(wire_);
      if (!written) co_return false;
      if (progress == Progress::kDone) co_return reply_.http11&& reply_.keep_alive;
    } else if (progress == Progress::kDone) {
      socket_.unwatch();  // a client may close its sending side once all is sent; the answer still
                          // goes out
      Response response;
      response.body = answer_->body();
      co_return co_await reply_whole(response);
    }
  }
}

Generation::Progress Generation::take(const actors::SinkEvent& event) {
  if (const auto* failed = std::get_if<actors::Failed>(&event)) {
    failure_ = failed->error;
    return Progress::kFailed;
  }
  if (std::holds_alternative<actors::Delta>(event)) runtime::trace_hop(request_, "net.push");
  if (stream_) {
    answer_->stream(event, payloads_);
  } else {
    answer_->collect(event);
  }
  return std::holds_alternative<actors::Done>(event) ? Progress::kDone : Progress::kGoing;
}

void Generation::append_to_wire(Progress progress) {
  wire_.clear();
  if (!head_sent_) {
    wire_ = stream_head(reply_);
    head_sent_ = true;
    count(200);
  }
  append_events(payloads_, reply_.http11, wire_);
  if (progress == Progress::kDone) append_stream_end(reply_.http11, wire_);
}

asio::awaitable<bool> Generation::fail(const Error& error) {
  if (!head_sent_) {
    const Response response = refusal(error);
    co_return co_await reply_whole(response);
  }
  const actors::SinkEvent event = actors::Failed{error};
  answer_->stream(event, payloads_);  // after what came before it in the same burst
  wire_.clear();
  append_events(payloads_, reply_.http11, wire_);
  append_stream_end(reply_.http11, wire_);
  co_await socket_.write(wire_);
  co_return false;
}

asio::awaitable<bool> Generation::reply_whole(const Response& response) {
  count(response.status);
  wire_ = to_wire(response, reply_);
  const bool written = co_await socket_.write(wire_);
  co_return written&& reply_.keep_alive;
}

Response Generation::refusal(const Error& error) const {
  const unsigned status = probe_ ? 503 : http_status(error.code);
  return error_response(error, status, context_.config.limits);
}

}  // namespace net
