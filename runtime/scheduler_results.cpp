// What comes back from the worker, and what of it the sessions are told.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/plan_moves.hpp"
#include "runtime/scheduler_impl.hpp"

namespace runtime {

void Scheduler::Impl::on(StepResult&& result) {
  VERIFY(!in_flight.empty());
  PlannedStep planned = std::move(in_flight.front());
  in_flight.pop_front();
  VERIFY(planned.step == result.step);
  VERIFY(planned.rows.size() == result.rows.size());
  ++counters.steps_total;
  log_step_done(result.step, moves);
  if (!result.lost.empty()) send(memory::CacheRequest{memory::Forget{std::move(result.lost)}});
  for (size_t i = 0; i < planned.rows.size(); ++i) {
    VERIFY(planned.rows[i].sequence == result.rows[i].sequence);
    if (Sequence* sequence = find(planned.rows[i].sequence, planned.rows[i].ticket)) {
      on_row(*sequence, planned.rows[i], std::move(result.rows[i]));
    } else {
      ++counters.ghost_rows_total;  // it ended or was retracted after this plan was sent
    }
  }
  spare.push_back(std::move(planned));
}

void Scheduler::Impl::on_row(Sequence& sequence, const PlannedStep::Row& planned, RowResult&& row) {
  if (row.lost) return restart(sequence);
  if (!row.finite) {
    kernels::Error error{kernels::ErrorCode::kInternal,
                         "the model produced a value that is not finite at position " +
                             std::to_string(planned.position + planned.count - 1),
                         {}};
    finish(sequence, {FinishReason::kError, {}, std::move(error), true});
    return;
  }
  on_snapshots(sequence, planned);
  if (planned.position < sequence.prompt_tokens) on_prompt(sequence, planned, row);
  if (planned.sample) {
    on_token(sequence, row);
  } else if (sequence.max_tokens == 0 &&
             planned.position + planned.count == sequence.prompt_tokens) {
    finish(sequence, {FinishReason::kLength, {}, {}});
  }
}

// A snapshot slot is the tree's from here on, or waits for the next one or the end. Its refill is a
// fresh slot, so that no plan under way or to come writes to what was donated.
void Scheduler::Impl::on_snapshots(Sequence& sequence, const PlannedStep::Row& planned) {
  Sequence::Admission& now = sequence.now;
  for (const PlannedStep::Taken& taken : planned.taken) {
    VERIFY(now.under_way > 0);
    --now.under_way;
    ++counters.snapshots_total;
    if (taken.rolling) {
      if (now.kept) now.spare.push_back(now.kept->slot);
      now.kept = taken.snapshot;
    } else {
      const uint32_t useful =
          admission.planner().useful_slots(now.consumed, sequence.limit_positions());
      donate(sequence, taken.snapshot, sequence.snapshot_slots() < useful);
    }
  }
}

void Scheduler::Impl::on_prompt(Sequence& sequence, const PlannedStep::Row& planned,
                                RowResult& row) {
  const uint32_t end = std::min(planned.position + planned.count, sequence.prompt_tokens);
  if (end > sequence.prompt_counted) {
    counters.prompt_tokens_total += end - sequence.prompt_counted;
    sequence.prompt_counted = end;
  }
  if (!sequence.prompt_logprobs || sequence.prompt_sent) return;
  VERIFY(sequence.prompt_values.size() == planned.position);  // positions 1 .. position are known
  std::move(row.prompt.begin(), row.prompt.end(), std::back_inserter(sequence.prompt_values));
  if (end < sequence.prompt_tokens) return;
  VERIFY(sequence.prompt_values.size() == sequence.prompt_tokens - 1);
  sequence.prompt_sent = true;
  tell(SequencePrompt{sequence.request, sequence.id, std::move(sequence.prompt_values)});
  sequence.prompt_values.clear();
}

void Scheduler::Impl::on_token(Sequence& sequence, RowResult& row) {
  VERIFY(row.token.has_value());
  VERIFY(row.token_position == sequence.known_tokens());
  ++counters.generation_tokens_total;
  if (ends(sequence, *row.token)) {
    finish(sequence, {FinishReason::kStop, row.token, {}});
    return;
  }
  sequence.output.push_back(*row.token);
  tell(SequenceToken{sequence.request, sequence.id, *row.token, std::move(row.logprobs)});
  if (sequence.output_tokens() == sequence.max_tokens)
    finish(sequence, {FinishReason::kLength, {}, {}});
}

bool Scheduler::Impl::ends(const Sequence& sequence, TokenId token) const {
  const std::vector<TokenId>& stops = sequence.sampling.stop_ids;
  return std::find(stops.begin(), stops.end(), token) != stops.end();
}

}  // namespace runtime
