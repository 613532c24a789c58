// Decode steps that decide nothing, absorbed many at a time. What a run of them leaves behind is
// what on(StepResult) and plan() would have left, called once for each.
#include <algorithm>

#include "kernels/base/verify.hpp"
#include "runtime/plan_moves.hpp"
#include "runtime/scheduler_impl.hpp"

namespace runtime {

// Every running sequence, in order, with one token that is not of its prompt, and none saved.
bool Scheduler::Impl::is_plain(const PlannedStep& planned) const {
  if (planned.rows.size() != running.size()) return false;
  for (size_t i = 0; i < running.size(); ++i) {
    const PlannedStep::Row& row = planned.rows[i];
    const Sequence& sequence = *running[i];
    if (row.sequence != sequence.id || row.ticket != sequence.now.ticket) return false;
    if (row.position < sequence.now.course.tokens || !row.taken.empty()) return false;
  }
  return true;
}

// How many more results this sequence takes without an end, a page or a state to save.
uint32_t Scheduler::Impl::steady_steps(const Sequence& sequence) const {
  const Sequence::Admission& now = sequence.now;
  if (!sequence.sampling.stop_ids.empty() || sequence.asked_pages != 0) return 0;
  const uint32_t limit = sequence.limit_positions();
  const uint64_t room = uint64_t{now.pages} * config.page_tokens;
  uint64_t steps = limit - now.consumed;
  steps = std::min<uint64_t>(steps, sequence.max_tokens - sequence.output_tokens() - 1);
  if (limit > room) {  // the next page is asked for when the plans under way would need it
    const uint64_t ahead = now.consumed + uint64_t{config.plans_in_flight};
    steps = std::min(steps, room - std::min(room, ahead));
  }
  if (config.prefix_cache) {
    const uint32_t grid = admission.planner().grid();
    steps = std::min<uint64_t>(steps, grid - 1 - now.consumed % grid);
  }
  return static_cast<uint32_t>(steps);
}

uint32_t Scheduler::Impl::steady_steps() const {
  if (running.empty() || running.size() > config.chunk_tokens || !head.empty()) return 0;
  if (in_flight.size() != config.plans_in_flight) return 0;
  if (queue.size() + running.size() != sequences.size()) return 0;  // some are being opened
  if (!queue.empty() && admission.may_open()) return 0;
  for (const PlannedStep& planned : in_flight) {
    if (!is_plain(planned)) return 0;
  }
  uint32_t steps = UINT32_MAX;
  for (const Sequence* sequence : running) {
    steps = std::min(steps, steady_steps(*sequence));
    if (steps == 0) break;
  }
  return steps;
}

void Scheduler::Impl::skip(uint32_t steps, const TokenSource& tokens) {
  VERIFY(steps > 0);
  VERIFY(steps <= steady_steps());
  const uint64_t first_done = in_flight.front().step;
  for (uint32_t i = 0; i < steps; ++i) {
    log_step_done(first_done + i, moves);
    for (const Sequence* sequence : running) {
      log_decode(sequence->id, sequence->now.working, sequence->now.consumed + i,
                 last_step + 1 + i, moves);
    }
  }
  builder.skip(steps);
  last_step += steps;
  for (PlannedStep& planned : in_flight) {
    planned.step += steps;
    for (PlannedStep::Row& row : planned.rows) row.position += steps;
  }
  for (Sequence* sequence : running) {
    for (uint32_t i = 0; i < steps; ++i)
      sequence->output.push_back(tokens(sequence->id, sequence->output_tokens()));
    sequence->now.consumed += steps;
    sequence->now.last_step = last_step;
  }
  counters.steps_total += steps;
  counters.generation_tokens_total += uint64_t{steps} * running.size();
}

uint32_t Scheduler::steady_steps() const { return impl_->steady_steps(); }
void Scheduler::skip(uint32_t steps, const TokenSource& tokens) { impl_->skip(steps, tokens); }

}  // namespace runtime
