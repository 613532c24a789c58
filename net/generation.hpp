// One generation on one connection: submits the request, carries its events to the client, and
// gives the request up the moment the client leaves.
#pragma once

#include <memory>
#include <string>

#include "net/client_socket.hpp"
#include "net/generation_terms.hpp"
#include "net/openai_api.hpp"
#include "net/server_context.hpp"
#include "net/token_queue.hpp"

namespace net {

// When a request's body and its parsed form were complete, before it had an id; 0 while tracing is
// off.
struct ArrivalTimes {
  uint64_t read_ns = 0, parse_ns = 0;
};

class Generation {
 public:
  Generation(ServerContext& context, ClientSocket& socket) : context_(context), socket_(socket) {}

  // False: the connection must close.
  asio::awaitable<bool> run(ParsedRequest parsed, Reply reply, GenerationTerms terms,
                            ArrivalTimes times);
  bool head_sent() const { return head_sent_; }

 private:
  class Ticket;
  enum class Progress { kGoing, kDone, kFailed };

  asio::awaitable<bool> carry(Ticket& ticket);
  bool wait_is_over(Ticket& ticket);  // no event will come: sets failure_
  // All of events_, into payloads_ or the collected answer; kFailed sets failure_.
  Progress take_events();
  void append_to_wire(Progress progress);
  // As a status while possible, else as the stream's last event.
  asio::awaitable<bool> fail(const kernels::Error& error);

  ServerContext& context_;
  ClientSocket& socket_;
  Reply reply_;
  GenerationTerms terms_;
  bool stream_ = false;
  bool head_sent_ = false;      // the status is out: an error can only be an event now
  runtime::RequestId request_;  // once submitted
  std::unique_ptr<Answer> answer_;
  std::vector<actors::SinkEvent> events_;
  std::vector<std::string> payloads_;
  std::string wire_;
  kernels::Error failure_;
};

}  // namespace net
