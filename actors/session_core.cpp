#include "actors/session_core.hpp"

#include <exception>
#include <utility>

#include "actors/cache_namespace.hpp"
#include "actors/sequence_ids.hpp"
#include "kernels/base/verify.hpp"
#include "runtime/endings.hpp"
#include "runtime/trace.hpp"

namespace actors {

using kernels::Error;
using kernels::ErrorCode;
using runtime::Abort;
using runtime::SchedulerEvent;

SessionCore::SessionCore(runtime::RequestId request, uint64_t arrival_ns, Sink sink,
                         const SessionContext& context)
    : request_(request), arrival_ns_(arrival_ns), sink_(std::move(sink)), context_(context) {}

std::optional<runtime::Submit> SessionCore::on_encoded(EncodeOutcome outcome) {
  const bool wanted = phase_ == Phase::kEncoding;
  phase_ = Phase::kFinished;
  if (!wanted) return std::nullopt;
  if (!outcome.encoded) {
    offer(Failed{outcome.encoded.error()});
    return std::nullopt;
  }
  if (!offer(Accepted{outcome.encoded->prompts})) return std::nullopt;
  phase_ = Phase::kRunning;
  return make_submit(std::move(outcome.request), std::move(*outcome.encoded));
}

runtime::Submit SessionCore::make_submit(runtime::GenerateRequest request, EncodedPrompts encoded) {
  OutputOptions options{context_.tokenizer,        std::move(request.stop),
                        request.include_stop_text, request.skip_special_tokens,
                        request.parse_chat,        false};
  if (const auto* chat = std::get_if<runtime::ChatPrompt>(&request.prompts.front()))
    options.thinking = chat->thinking;
  runtime::Submit submit;
  submit.request = request_;
  submit.priority = request.priority;
  if (request.deadline_ms) submit.deadline_us = arrival_ns_ / 1000 + *request.deadline_ms * 1000;
  n_ = request.n;
  const uint64_t name_space = name_space_of(request.cache_salt, context_.arithmetic_id);
  for (uint32_t prompt = 0; prompt < encoded.prompts.size(); ++prompt) {
    for (uint32_t j = 0; j < n_; ++j) {
      const uint32_t choice = prompt * n_ + j;
      runtime::NewSequence sequence;
      sequence.sequence = sequence_of(request_, choice);
      sequence.prompt = encoded.prompts[prompt];
      sequence.max_tokens = encoded.max_tokens[prompt];
      sequence.sampling = request.sampling;
      sequence.sampling.choice = choice;
      sequence.prompt_logprobs = request.prompt_logprobs;
      sequence.name_space = name_space;
      submit.sequences.push_back(std::move(sequence));
      choices_.push_back({ChoiceStream(choice, options), false, 0});
    }
  }
  return submit;
}

std::vector<SchedulerEvent> SessionCore::on_events(std::vector<runtime::SessionEvent> events) {
  Orders orders;
  for (auto& event : events) std::visit([&](auto& value) { on(std::move(value), orders); }, event);
  flush(orders);
  if (!served_ || phase_ == Phase::kFinished) return orders;
  if (phase_ == Phase::kRunning) {
    context_.telemetry->finished(seconds_between(arrival_ns_, context_.clock()));
    offer(totals_);
  }
  phase_ = Phase::kFinished;
  return {};  // nothing is left that an order could name
}

std::vector<SchedulerEvent> SessionCore::on_abort(const Error& error) {
  Orders orders;
  if (phase_ == Phase::kEncoding) {
    phase_ = Phase::kLeaving;  // the credit stays taken while the text worker holds the prompt
    offer(Failed{error});
  } else if (phase_ == Phase::kRunning) {
    leave(error.code, orders);
    offer(Failed{error});
  }
  return orders;
}

void SessionCore::on_loss(const Error& error) {
  if (phase_ == Phase::kEncoding || phase_ == Phase::kRunning) offer(Failed{error});
  phase_ = Phase::kFinished;
}

void SessionCore::token(runtime::SequenceToken&& token, Orders& orders) {
  runtime::trace_hop(request_, "session.token");
  Choice& choice = choices_.at(choice_of(token.sequence));
  if (phase_ != Phase::kRunning || choice.done)
    return;  // a token behind a stop string: never counted
  time_token(choice);
  Delta& delta = delta_of(choice_of(token.sequence), orders);
  const runtime::SequenceId sequence = token.sequence;
  choice.stream.push(std::move(token), delta);
  if (!choice.stream.stopped()) return;
  orders.push_back(runtime::StopSequence{sequence, choice.stream.output_tokens()});
  end_choice(choice, nullptr, orders);
}

void SessionCore::on(runtime::SequencePrompt&& prompt, Orders& orders) {
  const uint32_t choice = choice_of(prompt.sequence);
  if (phase_ != Phase::kRunning || choices_.at(choice).done) return;
  delta_of(choice, orders).prompt_logprobs = std::move(prompt.prompt);
}

void SessionCore::on(runtime::SequenceFinished&& finished, Orders& orders) {
  VERIFY(!served_);
  served_ = finished.last;
  if (phase_ != Phase::kRunning) return;
  const uint32_t index = choice_of(finished.sequence);
  if (index % n_ == 0) {  // the choices of one prompt share it
    totals_.prompt_tokens += finished.prompt_tokens;
    totals_.cached_tokens += finished.cached_tokens;
  }
  const bool failed = finished.error || finished.reason == runtime::FinishReason::kAbort ||
                      finished.reason == runtime::FinishReason::kError;
  Choice& choice = choices_.at(index);
  if (failed && !choice.done) {
    const Error error = finished.error.value_or(runtime::request_aborted());
    leave(error.code, orders);
    offer(Failed{error});
  } else if (!choice.done) {
    choice.stream.finish(delta_of(index, orders));
    end_choice(choice, &finished, orders);
  }
}

void SessionCore::end_choice(Choice& choice, const runtime::SequenceFinished* finished,
                             Orders& orders) {
  flush(orders);
  choice.done = true;
  const ChoiceDone done = choice.stream.summary(finished);
  totals_.output_tokens += done.output_tokens;
  emit(done, orders);
}

Delta& SessionCore::delta_of(uint32_t choice, Orders& orders) {
  if (delta_ && delta_->choice != choice) flush(orders);
  if (!delta_) delta_ = Delta{choice, {}, {}, {}, {}, {}};
  return *delta_;
}

void SessionCore::flush(Orders& orders) {
  if (!delta_) return;
  Delta delta = std::move(*delta_);
  delta_.reset();
  const bool empty = delta.token_ids.empty() && delta.text.empty() && delta.chat.empty() &&
                     delta.prompt_logprobs.empty();
  if (!empty) emit(std::move(delta), orders);
}

void SessionCore::emit(SinkEvent event, Orders& orders) {
  if (phase_ != Phase::kRunning) return;
  if (!offer(std::move(event))) leave(ErrorCode::kCancelled, orders);
}

// A sink that throws is a receiver that cannot go on, as one that says so.
bool SessionCore::offer(SinkEvent event) {
  try {
    return sink_(std::move(event));
  } catch (const std::exception&) {
    return false;
  }
}

// The board first: no plan that the scheduler builds from now on names this request.
void SessionCore::leave(ErrorCode code, Orders& orders) {
  phase_ = Phase::kLeaving;
  delta_.reset();
  context_.cancellations->post(request_, code);
  orders.push_back(Abort{request_, code});
}

void SessionCore::time_token(Choice& choice) {
  const uint64_t now = context_.clock();
  if (!std::exchange(first_token_seen_, true)) {
    context_.telemetry->first_token(seconds_between(arrival_ns_, now));
  }
  if (choice.last_token_ns != 0)
    context_.telemetry->next_token(seconds_between(choice.last_token_ns, now));
  choice.last_token_ns = now;
}

}  // namespace actors
