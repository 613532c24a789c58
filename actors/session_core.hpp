// One request from its encoded prompt to its last event: turns what the scheduler says into what
// the sink receives, and says what the scheduler must be told. No threads, no mailbox.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/cancel_board.hpp"
#include "actors/choice_stream.hpp"
#include "actors/clock.hpp"
#include "actors/telemetry.hpp"
#include "actors/text_encoder.hpp"

namespace actors {

struct EncodeJob {
  runtime::RequestId request_id;
  runtime::GenerateRequest request;
  uint64_t deadline_ns = 0;  // 0 = none
};
struct EncodeOutcome {
  runtime::GenerateRequest request;
  kernels::Result<EncodedPrompts> encoded;
};

// How a request ends whose deadline passes before its prompt is encoded.
inline kernels::Error late_for_encoding() {
  return {kernels::ErrorCode::kTimeout,
          "the request's deadline passed before its prompt was encoded",
          {}};
}

struct SessionContext {  // shared by the sessions of a service; outlives them
  std::shared_ptr<const runtime::Tokenizer> tokenizer;
  Clock clock;
  Telemetry* telemetry = nullptr;
  CancelBoard* cancellations = nullptr;
  uint64_t arithmetic_id = 0;  // of the engine: see cache_namespace.hpp
};

// Invariant: the sink receives Accepted? Delta* (ChoiceDone after its choice's deltas) Done, or is
// cut short by one Failed or by its own refusal; nothing follows either.
class SessionCore {
 public:
  SessionCore(runtime::RequestId request, uint64_t arrival_ns, Sink sink,
              const SessionContext& context);

  // A Submit for the scheduler, if the request is still wanted.
  std::optional<runtime::Submit> on_encoded(EncodeOutcome outcome);
  // Orders for the scheduler: Abort or StopSequence.
  std::vector<runtime::SchedulerEvent> on_events(std::vector<runtime::SessionEvent> events);
  std::vector<runtime::SchedulerEvent> on_abort(const kernels::Error& error);
  // The engine is gone, so nothing more will come from it.
  void on_loss(const kernels::Error& error);

  bool encoding() const { return phase_ == Phase::kEncoding; }
  bool finished() const { return phase_ == Phase::kFinished; }

 private:
  enum class Phase {
    kEncoding,
    kRunning,
    kLeaving,  // the client has its end; the text worker or the scheduler still names the request
    kFinished,
  };
  struct Choice {
    ChoiceStream stream;
    bool done = false;
    uint64_t last_token_ns = 0;
  };
  using Orders = std::vector<runtime::SchedulerEvent>;

  runtime::Submit make_submit(runtime::GenerateRequest request, EncodedPrompts encoded);
  void on(runtime::SequenceToken&& event, Orders& orders) { token(std::move(event), orders); }
  void token(runtime::SequenceToken&& token, Orders& orders);
  void on(runtime::SequencePrompt&& prompt, Orders& orders);
  void on(runtime::SequenceFinished&& finished, Orders& orders);
  void end_choice(Choice& choice, const runtime::SequenceFinished* finished, Orders& orders);
  Delta& delta_of(uint32_t choice,
                  Orders& orders);  // the delta being filled; sends another choice's first
  void flush(Orders& orders);
  void emit(SinkEvent event, Orders& orders);
  bool offer(SinkEvent event);
  void leave(kernels::ErrorCode code, Orders& orders);
  void time_token(Choice& choice);

  runtime::RequestId request_;
  uint64_t arrival_ns_;
  Sink sink_;
  const SessionContext& context_;
  Phase phase_ = Phase::kEncoding;
  std::vector<Choice> choices_;
  bool served_ = false;  // the scheduler has finished every sequence
  uint32_t n_ = 1;
  bool first_token_seen_ = false;
  std::optional<Delta> delta_;
  Done totals_;
};

}  // namespace actors
