// The OpenAI-compatible schemas: request bodies become GenerateRequests, sink events become
// answers. Knows JSON, no sockets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/service.hpp"
#include "kernels/base/result.hpp"
#include "runtime/request.hpp"

namespace net {

// Turns the sink events of one request into what goes on the wire. Streamed and whole answers pass
// through the same code. Invariant: payloads joined choice by choice carry the same text, calls and
// log-probabilities as body().
class Answer {
 public:
  virtual ~Answer() = default;
  // Streaming: appends the JSON text of zero or more SSE `data:` payloads; "[DONE]" is the last one
  // of an answer.
  virtual void stream(const actors::SinkEvent& event, std::vector<std::string>& payloads) = 0;
  // Not streaming: collects; after Done, body() is the whole JSON answer. Failed is not collected:
  // an answer that did not begin fails with a status.
  virtual void collect(const actors::SinkEvent& event) = 0;
  virtual std::string body() = 0;
};

struct ParsedRequest {
  runtime::GenerateRequest generate;
  bool stream = false;
  std::unique_ptr<Answer> answer;
};

kernels::Result<ParsedRequest> parse_chat_request(std::string_view body,
                                                  const actors::Service& service);
kernels::Result<ParsedRequest> parse_completion_request(std::string_view body,
                                                        const actors::Service& service);
// JSON answers. A tokenization ends early, without one, once keep_going says no.
kernels::Result<std::string> answer_tokenize(std::string_view body, const actors::Service& service,
                                             const runtime::KeepGoing& keep_going = {});
kernels::Result<std::string> answer_detokenize(std::string_view body,
                                               const actors::Service& service);

std::string models_json(const actors::ServiceInfo& info);
std::string model_json(const actors::ServiceInfo& info,
                       std::string_view id);  // the caller decides which ids exist

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const kernels::Error& error, unsigned status);
unsigned http_status(kernels::ErrorCode code);  // 400/404/429/408/499/503/500

}  // namespace net
