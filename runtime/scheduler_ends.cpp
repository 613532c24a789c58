// How an admission or a life ends: finish, abort, deadline, retraction, all through
// end_admission().
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/endings.hpp"
#include "runtime/plan_moves.hpp"
#include "runtime/scheduler_impl.hpp"

namespace runtime {
namespace {

std::string why(kernels::ErrorCode code) {
  switch (code) {
    case kernels::ErrorCode::kTimeout:
      return "the request's deadline passed";
    case kernels::ErrorCode::kUnavailable:
      return shutting_down().message;
    default:
      return request_aborted().message;
  }
}

}  // namespace

void Scheduler::Impl::abort(RequestId request, kernels::ErrorCode code) {
  const std::vector<SequenceId> open = requests.sequences_of(request);
  if (open.empty()) return;
  ++counters.aborted_total;
  for (const SequenceId id : open) {
    Sequence* sequence = find(id);
    VERIFY(sequence != nullptr);
    std::string message =
        why(code) + " after " + std::to_string(sequence->output_tokens()) + " output tokens";
    finish(*sequence, {FinishReason::kAbort, {}, kernels::Error{code, std::move(message), {}}});
  }
}

void Scheduler::Impl::expire(uint64_t now_us) {
  while (const auto late = requests.expired(now_us)) abort(*late, kernels::ErrorCode::kTimeout);
}

void Scheduler::Impl::retract(Sequence& sequence) {
  ++counters.retracted_total;
  sequence.computed =
      std::max(sequence.computed, std::min(sequence.now.consumed, sequence.known_tokens()));
  donate_kept(sequence, sequence.known_tokens());
  end_admission(sequence, Admission::Reason::kYielded);
  sequence.prompt_values.clear();  // an unfinished prompt is read again from its first token
  queue.push(sequence);
}

// What its admission began from came back from the host with other bytes. Nothing that it computed
// was used: its rows were void from the first on.
void Scheduler::Impl::restart(Sequence& sequence) {
  ++counters.restarted_total;
  sequence.cold = true;
  sequence.cached_tokens = 0;
  end_admission(sequence, Admission::Reason::kEnded);
  sequence.prompt_values.clear();
  queue.push(sequence);
}

void Scheduler::Impl::finish(Sequence& sequence, Ending ending) {
  if (sequence.phase == Phase::kQueued) queue.erase(sequence);
  if (ending.reason == FinishReason::kLength || ending.stop_id)
    donate_kept(sequence, sequence.known_tokens());
  end_admission(sequence,
                ending.poisoned ? Admission::Reason::kPoisoned : Admission::Reason::kEnded);
  SequenceFinished finished;
  finished.request = sequence.request;
  finished.sequence = sequence.id;
  finished.reason = ending.reason;
  finished.stop_id = ending.stop_id;
  finished.error = std::move(ending.error);
  finished.prompt_tokens = sequence.prompt_tokens;
  finished.output_tokens =
      sequence.output_tokens() + (ending.stop_id ? 1 : 0);  // the end id was generated too
  finished.cached_tokens = sequence.cached_tokens.value_or(0);
  finished.last = requests.ended(sequence.request, sequence.id);
  tell(std::move(finished));
  const SequenceId id = sequence.id;
  sequences.erase(id);
}

void Scheduler::Impl::donate(Sequence& sequence, const Snapshot& snapshot, bool refill) {
  ++counters.donations_total;
  send(memory::CacheRequest{admission.donate(sequence, snapshot, refill)});
}

// Before the end of an admission whose tokens are good: positions beyond `positions_max` are not of
// the answer.
void Scheduler::Impl::donate_kept(Sequence& sequence, uint32_t positions_max) {
  const std::optional<Snapshot> kept = std::exchange(sequence.now.kept, std::nullopt);
  if (kept && kept->position <= positions_max) donate(sequence, *kept, false);
}

// The one place where an admission ends, whichever of finish, abort, stop and retraction comes
// first. Plans already sent may still name the sequence: the worker executes them before the Close,
// and before any Bind of these blocks to a new owner.
void Scheduler::Impl::end_admission(Sequence& sequence, Admission::Reason reason) {
  if (sequence.phase == Phase::kQueued) return;
  if (sequence.phase == Phase::kRunning) VERIFY(std::erase(running, &sequence) == 1);
  if (sequence.now.started) {
    head.closes.push_back(sequence.id);
    log_end(sequence.id, sequence.now.consumed, last_step, moves);
  }
  send(memory::CacheRequest{admission.drop(sequence, reason)});
}

}  // namespace runtime
