// What a plan moves, in the words of the move log.
#pragma once

#include "memory/move_log.hpp"
#include "runtime/plan_builder.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// Of a plan that is about to be sent: its Clears, Restores and rows. What its head moves is on
// record already. `planned` is what was remembered of it.
void log_moves(const StepPlan& plan, const PlannedStep& planned, memory::MoveLog& log);

// Of a plan that is not spelled out: a row of one token.
void log_decode(SequenceId sequence, SlotId working, uint32_t position, uint64_t step,
                memory::MoveLog& log);

// The result of `step` is back.
void log_step_done(uint64_t step, memory::MoveLog& log);

// No later plan has a row of this sequence, which was planned up to `position`.
void log_end(SequenceId sequence, uint32_t position, uint64_t step, memory::MoveLog& log);

}  // namespace runtime
