#include "runtime/plan_moves.hpp"

#include <span>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

using memory::BlockKind;
using memory::BlockPlace;
using memory::MoveKind;
using memory::MoveRecord;

template <class Id>
BlockPlace place(Id id) {
  return {id.index, id.generation, memory::kNowhere};  // the log knows where it lies
}

class PlanMoves {
 public:
  PlanMoves(const Forward& forward, const PlannedStep& planned, memory::MoveLog& log)
      : forward_(forward), planned_(planned), log_(log) {}

  // Clears and Restores stand in the order of the rows that they start; a sequence that has neither
  // starts from what was staged into its working slot.
  void starts(std::span<const Command> commands) {
    auto command = commands.begin();
    for (const PlanRow& row : forward_.rows) {
      if (!row.start) continue;
      while (command != commands.end() && !is_start(*command)) ++command;
      MoveRecord record = of(MoveKind::kRestore, BlockKind::kState, row.sequence);
      record.target = place(row.start->slot);
      record.position = row.position;
      if (command != commands.end()) {
        const auto* const clear = std::get_if<memory::Clear>(&*command);
        const auto* const restore = std::get_if<memory::Restore>(&*command);
        if ((clear ? clear->slot : restore->to) == row.start->slot) {
          if (clear) record.move = MoveKind::kClear;
          if (restore) record.source = place(restore->from);
          ++command;
        }
      }
      log_.append(record);
    }
  }

  void rows() {
    for (size_t i = 0; i < forward_.rows.size(); ++i) {
      append_pages(forward_.rows[i], planned_.rows[i].first_page);
      write(forward_.rows[i], planned_.rows[i].working);
    }
  }

 private:
  MoveRecord of(MoveKind move, BlockKind block, SequenceId sequence) const {
    MoveRecord record = memory::move_by(move, block, sequence);
    record.step = forward_.step;
    return record;
  }
  static bool is_start(const Command& command) {
    return std::holds_alternative<memory::Clear>(command) ||
           std::holds_alternative<memory::Restore>(command);
  }
  void append_pages(const PlanRow& row, uint32_t first_page) {
    MoveRecord record = of(MoveKind::kAppend, BlockKind::kPage, row.sequence);
    for (const PageId page : row.new_pages) {
      record.target = place(page);
      record.position = first_page++ * planned_.page_tokens;
      log_.append(record);
    }
  }
  void write(const PlanRow& row, SlotId working) {
    MoveRecord record = of(MoveKind::kWrite, BlockKind::kState, row.sequence);
    record.target = place(working);
    record.position = row.position;
    record.count = row.count;
    log_.append(record);
    record.move = MoveKind::kSnapshot;
    record.count = 0;
    record.source = record.target;
    for (const Snapshot& snapshot : row.snapshots) {
      record.target = place(snapshot.slot);
      record.position = snapshot.position;
      log_.append(record);
    }
  }

  const Forward& forward_;
  const PlannedStep& planned_;
  memory::MoveLog& log_;
};

}  // namespace

void log_moves(const StepPlan& plan, const PlannedStep& planned, memory::MoveLog& log) {
  VERIFY(!plan.commands.empty());
  const auto* forward = std::get_if<Forward>(&plan.commands.back());
  VERIFY(forward != nullptr);
  VERIFY(forward->rows.size() == planned.rows.size());
  PlanMoves moves(*forward, planned, log);
  moves.starts(plan.commands);
  moves.rows();
}

void log_decode(SequenceId sequence, SlotId working, uint32_t position, uint64_t step,
                memory::MoveLog& log) {
  MoveRecord record = memory::move_by(MoveKind::kWrite, BlockKind::kState, sequence);
  record.step = step;
  record.target = place(working);
  record.position = position;
  record.count = 1;
  log.append(record);
}

void log_step_done(uint64_t step, memory::MoveLog& log) {
  MoveRecord record = memory::move_of(MoveKind::kStepDone, BlockKind::kState);
  record.step = step;
  log.append(record);
}

void log_end(SequenceId sequence, uint32_t position, uint64_t step, memory::MoveLog& log) {
  MoveRecord record = memory::move_by(MoveKind::kEnd, BlockKind::kState, sequence);
  record.position = position;
  record.step = step;
  log.append(record);
}

}  // namespace runtime
