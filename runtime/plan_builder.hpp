// Builds the next step plan from the running sequences: decode rows first, then prefill chunks up
// to chunk_tokens token rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/scheduler.hpp"
#include "runtime/sequence.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// What must be remembered of a plan until its result is back.
struct PlannedStep {
  struct Row {
    SequenceId sequence;
    uint32_t epoch = 0;  // of the admission it belongs to
    uint32_t position = 0, count = 0;
    bool sample = false;
  };
  uint64_t step = 0;
  std::vector<Row> rows;  // in plan order
};

// Invariant: a block is named only behind its Bind, in the same plan or an earlier one; a sequence
// has at most one row in a plan.
class PlanBuilder {
 public:
  explicit PlanBuilder(const SchedulerConfig& config);

  // Commands in order: Close, Bind*, Clear*, Forward. Empty when nothing can run now; then `closes`
  // and the sequences are as before. `running` is in the order of goes_before(). Advances the
  // sequences, empties `closes`, fills `planned`.
  std::optional<StepPlan> build(std::span<Sequence* const> running, std::vector<SequenceId>& closes,
                                PlannedStep& planned);

  // A plan without a Forward.
  static StepPlan close_only(std::vector<SequenceId>& closes);

 private:
  void pick_rows(std::span<Sequence* const> running);
  PlanRow make_row(Sequence& sequence, uint32_t count, StepPlan& plan);

  struct Pick {
    Sequence* sequence = nullptr;
    uint32_t count = 0;
  };
  uint32_t chunk_tokens_, page_tokens_;
  uint64_t last_step_ = 0;
  std::vector<Pick> picks_;          // scratch, reused
  std::vector<Sequence*> decoding_;  // scratch, reused
  std::vector<memory::Clear> clears_;
};

}  // namespace runtime
