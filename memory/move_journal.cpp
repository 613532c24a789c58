#include "memory/move_journal.hpp"

namespace memory {

void MoveJournal::begin(CacheReply& out, SequenceId sequence) {
  out_ = &out;
  sequence_ = sequence;
  seen_ = out.commands.size();
}

void MoveJournal::add_command(const Bind& bind) {
  MoveRecord record = move_by(MoveKind::kBind, bind.kind, sequence_);
  record.target = {bind.id, bind.generation, bind.physical};
  record.reason = bind.zero ? 1 : 0;
  out_->moves.push_back(record);
}

void MoveJournal::add_command(const Move& move) {
  MoveRecord record = move_of(MoveKind::kMove, move.kind);
  record.source = {move.id, move.generation, move.from};
  record.target = {move.id, move.generation, move.to};
  out_->moves.push_back(record);
}

// A copy that runs in the worker's own order is over before the next command begins.
void MoveJournal::add_command(const StageOut& copy) {
  MoveRecord record = move_of(MoveKind::kStageOut, copy.kind);
  record.source = {copy.id, copy.generation, kNowhere};
  record.target.physical = static_cast<uint32_t>(copy.host.value);
  out_->moves.push_back(record);
  record.move = MoveKind::kStageOutDone;
  out_->moves.push_back(record);
}

void MoveJournal::add_command(const StageIn& copy) {
  MoveRecord record = move_by(MoveKind::kStageIn, copy.kind, sequence_);
  record.source.physical = static_cast<uint32_t>(copy.host.value);
  record.target = {copy.id, copy.generation, kNowhere};
  record.position = kNowhere;
  out_->moves.push_back(record);
  record.move = MoveKind::kStageInDone;
  out_->moves.push_back(record);
}

void MoveJournal::catch_up() {
  for (; seen_ < out_->commands.size(); ++seen_)
    std::visit([&](const auto& command) { add_command(command); }, out_->commands[seen_]);
}

void MoveJournal::add(const MoveRecord& record) {
  catch_up();
  out_->moves.push_back(record);
}

void MoveJournal::free(MoveRecord record, const BlockPlace& place, FreeReason reason) {
  record.source = place;
  record.reason = static_cast<uint8_t>(reason);
  add(record);
}

}  // namespace memory
