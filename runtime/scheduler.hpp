// The scheduler core: which sequence runs what in the next step. Plain and deterministic: events
// in, outputs out; no thread, no I/O, and time only as the `now_us` of an event. The scheduler
// actor feeds it and sends what it returns.
//
// One step ahead: up to two plans with a Forward are under way, so plan N+1 is built before N's
// results are known. A row's input is then "the last sampled token". A sequence that ended in N may
// have a ghost row in N+1: its result is dropped here, its blocks are released only after that plan
// was sent (mailbox order makes reuse safe), and nothing of it outlives the sequence.
//
// Checkpoints: the forward that passes a position worth saving writes the state to a snapshot slot
// as well; once its result is back the slot goes to the cache manager, by index. What that one
// wants done (binds, moves) goes to the worker at the head of the next plan, in its order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "kernels/base/result.hpp"
#include "memory/cache_messages.hpp"
#include "memory/move_log.hpp"
#include "runtime/shared_tokens.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

struct SchedulerConfig {
  uint32_t context_length = 4096;  // prompt + output tokens of one sequence
  uint32_t page_tokens = 64;
  uint32_t max_running = 64;  // sequences that hold a working slot
  // Token rows of one step, decode rows included.
  uint32_t chunk_tokens = 512;
  uint32_t plans_in_flight = 2;
  uint32_t pages_max = 0;    // beside one state in an empty memory: what needs more is refused
  uint32_t move_ring = 1u << 15;  // newest moves kept for whoever asks: 64 B each, 2 MiB
  bool prefix_cache = true;       // false: nothing is saved and nothing restored
  auto fields() {
    return std::tie(context_length, page_tokens, max_running, chunk_tokens, plans_in_flight,
                    pages_max, move_ring, prefix_cache);
  }
};

enum class FinishReason { kStop, kLength, kAbort, kError };

// ---- events in ----
struct NewSequence {
  SequenceId sequence;
  SharedTokens prompt;
  uint32_t max_tokens = 0;  // output tokens; 0 = only read the prompt (prompt log-probabilities)
  SamplingParams sampling;
  bool prompt_logprobs = false;
  uint64_t name_space = 0;  // sequences of other namespaces share no prefix with it
  auto fields() {
    return std::tie(sequence, prompt, max_tokens, sampling, prompt_logprobs, name_space);
  }
};
struct Submit {
  RequestId request;
  std::vector<NewSequence> sequences;
  int32_t priority = 0;
  uint64_t deadline_us = 0;  // absolute, 0 = none
  auto fields() { return std::tie(request, sequences, priority, deadline_us); }
};
struct Abort {  // client gone, /abort_request, or shutdown. Unknown requests are ignored.
  RequestId request;
  kernels::ErrorCode code = kernels::ErrorCode::kCancelled;
  auto fields() { return std::tie(request, code); }
};
struct StopSequence {  // the session found a stop string: the sequence is finished, without error
  SequenceId sequence;
  uint32_t output_tokens = UINT32_MAX;  // up to the stop string's end: later ones never counted
  auto fields() { return std::tie(sequence, output_tokens); }
};
struct Tick {  // time passed: deadlines are checked
  auto fields() { return std::tie(); }
};
using SchedulerEvent =
    std::variant<Submit, Abort, StopSequence, memory::CacheReply, StepResult, Tick>;

// ---- outputs ----
struct SequenceToken {  // to the session, in order per sequence
  RequestId request;
  SequenceId sequence;
  TokenId token = 0;
  std::optional<PositionLogprobs> logprobs;
};
// Log-probabilities of prompt positions 1 .. n-1, sent once, before the first token.
struct SequencePrompt {
  RequestId request;
  SequenceId sequence;
  std::vector<PositionLogprobs> prompt;
};
struct SequenceFinished {
  RequestId request;
  SequenceId sequence;
  FinishReason reason = FinishReason::kStop;
  // The id that ended it: not part of the text and never a SequenceToken, but generated and
  // therefore counted in output_tokens.
  std::optional<TokenId> stop_id;
  std::optional<kernels::Error> error;  // kAbort, kError
  // cached_tokens: of the prompt, whose state its first admission restored.
  uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0;
  bool last = false;  // nothing more comes for its request
};
using SessionEvent = std::variant<SequenceToken, SequencePrompt, SequenceFinished>;
using SchedulerOutput = std::variant<memory::CacheRequest, StepPlan, SessionEvent>;

struct SchedulerStats {
  uint32_t running = 0, queued = 0;
  uint64_t prompt_tokens_total = 0, generation_tokens_total = 0, requests_total = 0,
           aborted_total = 0, retracted_total = 0;
  uint64_t steps_total = 0, ghost_rows_total = 0;
  // Of first admissions: tokens looked up; those whose KV the cache had; those whose state it had
  // too, which are the ones not computed again.
  uint64_t looked_up_tokens_total = 0, kv_hit_tokens_total = 0, state_hit_tokens_total = 0;
  // Computed though they had been before: after a retraction, or because only their KV was there.
  uint64_t recomputed_tokens_total = 0;
  uint64_t snapshots_total = 0, snapshots_skipped_total = 0;  // skipped: no slot was free
  uint64_t donations_total = 0, moves_total = 0;
  uint64_t host_resumed_total = 0;  // retracted sequences that went on from a state on the host
  uint64_t restarted_total = 0;     // whose state came back from the host with other bytes
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();
  // Events are absorbed, then planned for; both append what is to be sent, in order. What plan()
  // builds depends on every event absorbed before it.
  void absorb(SchedulerEvent event, std::vector<SchedulerOutput>& out);
  void plan(uint64_t now_us, std::vector<SchedulerOutput>& out);
  void handle(SchedulerEvent event, uint64_t now_us, std::vector<SchedulerOutput>& out);  // both
  // How many results in a row decide nothing: each row's next token and the next plan of the same
  // rows is all that follows from them, if no other event comes between. 0: the next one may.
  uint32_t steady_steps() const;
  // The output number `index` (from 0) of a sequence.
  using TokenSource = std::function<TokenId(SequenceId sequence, uint32_t index)>;
  // As if so many results had been absorbed and planned for, one after another, but for what would
  // have been sent: at most steady_steps(). The plans under way are then the same many steps on.
  void skip(uint32_t steps, const TokenSource& tokens);
  SchedulerStats stats() const;
  std::optional<uint64_t> next_deadline_us() const;
  bool idle() const;   // nothing queued, running or in flight
  void check() const;  // VERIFYs invariants
  // Every move, in the order in which the worker sees it.
  memory::MoveLog& moves();
  const memory::MoveLog& moves() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace runtime
