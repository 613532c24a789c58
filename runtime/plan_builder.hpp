// Builds the next step plan from the running sequences: decode rows first, then prefill chunks up
// to chunk_tokens token rows. Decides which of their states are saved on the way.
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
  struct Taken {
    Snapshot snapshot;
    bool rolling = false;
  };
  struct Row {
    SequenceId sequence;
    uint64_t ticket = 0;  // of the admission it belongs to
    uint32_t position = 0, count = 0;
    bool sample = false;
    SlotId working;
    uint32_t first_page = 0;   // of its new pages, in the sequence's list
    std::vector<Taken> taken;  // ascending positions
  };
  uint64_t step = 0;
  uint32_t page_tokens = 0;
  std::vector<Row> rows;                   // in plan order
  std::vector<memory::Restored> restored;  // what the plan copies: told once it is sent
  uint32_t skipped = 0;                    // snapshots that found no slot
};

// What goes ahead of the rows of the next plan, whatever they are.
struct PlanHead {
  std::vector<memory::MemoryCommand> memory;  // from the cache manager, in its order
  std::vector<memory::MoveRecord> moves;      // of `memory`, and of what happened between
  std::vector<SequenceId> closes;             // records the worker may drop
  bool empty() const { return memory.empty() && closes.empty(); }
};

// Invariant: a block is named only behind its Bind, in the same plan or an earlier one; a sequence
// has at most one row in a plan; no slot is written twice by the plans under way.
class PlanBuilder {
 public:
  PlanBuilder(const SchedulerConfig& config, const CheckpointPlanner& planner);

  // Commands in order: the head's, (Clear | Restore)*, Forward. Empty when nothing can run now;
  // then `head` and the sequences are as before. `running` is in the order of goes_before().
  // Advances the sequences, empties `head`, fills `planned`.
  std::optional<StepPlan> build(std::span<Sequence* const> running, PlanHead& head,
                                PlannedStep& planned);

  // As if so many plans had been built.
  void skip(uint32_t steps) { last_step_ += steps; }

  // A plan without a Forward.
  static StepPlan head_only(PlanHead& head);

 private:
  void pick_rows(std::span<Sequence* const> running);
  PlanRow make_row(Sequence& sequence, uint32_t count, PlannedStep& planned);
  void start(Sequence& sequence, PlanRow& row, PlannedStep& planned);
  void take_snapshots(Sequence& sequence, PlanRow& row, PlannedStep& planned);

  struct Pick {
    Sequence* sequence = nullptr;
    uint32_t count = 0;
  };
  uint32_t chunk_tokens_, page_tokens_;
  bool prefix_cache_;
  const CheckpointPlanner& planner_;
  uint64_t last_step_ = 0;
  std::vector<Pick> picks_;                        // scratch, reused
  std::vector<Sequence*> decoding_;                // scratch, reused
  std::vector<Command> starts_;                    // scratch, reused: Clear and Restore
  std::vector<CheckpointPlanner::Wanted> wanted_;  // scratch, reused
};

}  // namespace runtime
