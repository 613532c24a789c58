// What the move checker knows of sequences: where each stands, which blocks it uses, and what
// became final of what it wrote.
#include <algorithm>

#include "memory/move_checker.hpp"

namespace memory {

using std::to_string;

// Whoever wrote the log says which sequence; one whose start is not in it is taken as it is.
MoveChecker::Run* MoveChecker::run_of(const MoveRecord& record) {
  const auto found = runs_.find(record.owner);
  if (found != runs_.end()) return &found->second;
  if (whole_) {
    fail("end", "sequence " + to_string(record.owner) + " does not run");
    return nullptr;
  }
  Run& run = runs_[record.owner];
  run.adopted = true;
  run.working = kNowhere;
  return &run;
}

void MoveChecker::start(const MoveRecord& record) {
  if (runs_.contains(record.owner))
    fail("end", "sequence " + to_string(record.owner) + " runs already");
  std::optional<uint32_t> position = 0;
  if (record.move == MoveKind::kRestore) {
    position = record.position;
    if (record.source == BlockPlace{}) {
      must_be_staged(record);
    } else if (const Block* const from = held(record, record.source)) {
      if (record.source.index == record.target.index) fail("owner", "it restores onto itself");
      if (from->owner.kind != OwnerKind::kNode && !from->adopted)
        fail("owner", "what it restores is no checkpoint of the tree");
      if (from->position != record.position && (from->position || !from->adopted)) {
        fail("position", "it restores position " + to_string(record.position) +
                             " from a checkpoint of " + to_string(from->position.value_or(0)));
      }
      must_be_final(record, *from);
    }
  }
  Block* const working = held(record, record.target);
  if (!working) return;
  must_own(record, *working);
  must_be_writable(record, *working);
  working->position = position;
  working->written_step = record.step;
  ++working->users;
  Run run;
  run.working = record.target.index;
  run.position = position;
  runs_[record.owner] = std::move(run);
}

// It starts from bytes that came from the host.
void MoveChecker::must_be_staged(const MoveRecord& record) {
  const Block* const block = held(record, record.target);
  if (!block) return;
  if (!block->staged && !block->adopted) fail("source", "nothing was staged into what it starts in");
  if (block->position && block->position != record.position)
    fail("position", "what was staged in is of position " + to_string(*block->position));
}

void MoveChecker::append(const MoveRecord& record) {
  Run* const run = run_of(record);
  Block* const page = held(record, record.target);
  if (!run || !page) return;
  if (page->arriving) fail("source", "a copy from the host still fills it");
  if (!run->adopted && record.position != run->pages.size() * geometry_.page_tokens) {
    fail("position", "its next page begins at " +
                         to_string(run->pages.size() * geometry_.page_tokens) + ", not at " +
                         to_string(record.position));
  }
  if (std::find(run->pages.begin(), run->pages.end(), record.target.index) != run->pages.end())
    fail("owner", "the sequence has this page already");
  if (page->owner.kind == OwnerKind::kNode) {
    if (page->position != record.position && (page->position || !page->adopted)) {
      fail("position", "the tree's page begins at " + to_string(page->position.value_or(0)));
    }
    if (run->shared == run->pages.size()) ++run->shared;
  } else {
    must_own(record, *page);
    if (!page->adopted) page->position = record.position;
  }
  run->pages.push_back(record.target.index);
  ++page->users;
}

void MoveChecker::write(const MoveRecord& record) {
  Run* const run = run_of(record);
  Block* const working = held(record, record.target);
  step_sent_ = std::max(step_sent_, record.step);
  if (!run || !working) return;
  if (run->working == kNowhere) {  // adopted
    run->working = record.target.index;
    run->position = record.position;
    ++working->users;
  }
  must_own(record, *working);
  must_be_writable(record, *working);
  if (run->working != record.target.index)
    fail("owner", "its working slot is state " + to_string(run->working));
  if (run->position != record.position) {
    fail("position", "its state stands at " + to_string(run->position.value_or(0)) +
                         ", the row begins at " + to_string(record.position));
  }
  if (record.count == 0) fail("position", "an empty row");
  if (!run->adopted) write_pages(record, *run);
  run->row_begin = record.position;
  run->position = record.position + record.count;
  working->position = run->position;
  working->written_step = record.step;
}

// Rows below `shared` are the tree's: read, not written.
void MoveChecker::write_pages(const MoveRecord& record, Run& run) {
  const uint32_t page_tokens = geometry_.page_tokens;
  const uint64_t end = uint64_t{record.position} + record.count;
  if (end > run.pages.size() * uint64_t{page_tokens}) {
    return fail("place", "its pages end at " + to_string(run.pages.size() * page_tokens) +
                             ", the row at " + to_string(end));
  }
  for (uint64_t i = std::max(record.position / page_tokens, run.shared); i * page_tokens < end;
       ++i) {
    Block& page = at(BlockKind::kPage, run.pages[i]);
    if (page.owner != Owner{record.owner_kind, record.owner} && !page.adopted) {
      fail("owner", "it writes page " + to_string(run.pages[i]) + ", which is not its own");
    }
    if (read(BlockKind::kPage, page.physical))
      fail("source", "a copy reads page " + to_string(run.pages[i]) + ", which it writes");
    page.filled = static_cast<uint32_t>(std::min<uint64_t>(end - i * page_tokens, page_tokens));
    page.written_step = record.step;
  }
}

void MoveChecker::snapshot(const MoveRecord& record) {
  Run* const run = run_of(record);
  const Block* const from = held(record, record.source);
  Block* const to = held(record, record.target);
  if (!run || !from || !to) return;
  must_own(record, *to);
  must_be_writable(record, *to);
  if (run->working != record.source.index && run->working != kNowhere)
    fail("owner", "its working slot is state " + to_string(run->working));
  if (run->working == record.target.index) fail("owner", "it saves onto its working slot");
  if (record.position <= run->row_begin || record.position > run->position.value_or(kNowhere)) {
    fail("position", "the row before it runs from " + to_string(run->row_begin) + " to " +
                         to_string(run->position.value_or(0)));
  }
  if (step_known_ && to->written_step > step_done_)
    fail("final", "step " + to_string(to->written_step) + ", which saves there too, is not back");
  to->position = record.position;
  to->written_step = record.step;
}

void MoveChecker::step_done(const MoveRecord& record) {
  if (step_known_ && record.step != step_done_ + 1)
    fail("order", "the result of step " + to_string(step_done_ + 1) + " was due");
  if (step_known_ && record.step > step_sent_)
    fail("order", "step " + to_string(record.step) + " was not sent");
  step_done_ = record.step;
  step_known_ = true;
}

void MoveChecker::donate(const MoveRecord& record) {
  Block* const block = held(record, record.source);
  if (!block) return;
  if (block->owner.kind == OwnerKind::kNode) fail("owner", "it is the tree's already");
  if (block->position != record.position && (block->position || !block->adopted)) {
    fail("position", "it is of position " + to_string(block->position.value_or(0)) + ", not of " +
                         to_string(record.position));
  }
  if (record.block == BlockKind::kState && block->users > 0)
    fail("owner", "it is a sequence's working slot");
  if (record.block == BlockKind::kPage && block->filled < geometry_.page_tokens &&
      !block->adopted) {
    fail("final", "only " + to_string(block->filled) + " of its rows were written");
  }
  must_be_final(record, *block);
  block->owner = {OwnerKind::kNode, record.owner};
  block->position = record.position;
}

void MoveChecker::end(const MoveRecord& record) {
  Run* const run = run_of(record);
  if (!run) return;
  if (run->position && run->position != record.position) {
    fail("position", "it was planned up to " + to_string(*run->position) + ", not " +
                         to_string(record.position));
  }
  const auto leave = [&](BlockKind kind, uint32_t index) {
    if (uint32_t& users = at(kind, index).users; users > 0) --users;
  };
  if (run->working != kNowhere) leave(BlockKind::kState, run->working);
  for (const uint32_t page : run->pages) leave(BlockKind::kPage, page);
  runs_.erase(record.owner);
}

std::vector<MoveViolation> MoveChecker::finish() const {
  std::vector<MoveViolation> left;
  for (const auto& [id, run] : runs_)
    left.push_back({0, "left over", "sequence " + to_string(id) + " has not ended"});
  if (step_sent_ > step_done_)
    left.push_back({0, "left over", "the result of step " + to_string(step_sent_) + " is not back"});
  for (const BlockKind kind : {BlockKind::kState, BlockKind::kPage}) {
    const auto& blocks = blocks_[static_cast<size_t>(kind)];
    for (size_t index = 0; index < blocks.size(); ++index) {
      const Block& block = blocks[index];
      if (block.use != Block::Use::kHeld || block.owner.kind != OwnerKind::kSequence) continue;
      left.push_back({0, "left over",
                      std::string(name_of(kind)) + " " + to_string(index) +
                          " still belongs to sequence " + to_string(block.owner.id)});
    }
    for (const auto& [physical, count] : readers_[static_cast<size_t>(kind)]) {
      left.push_back({0, "left over",
                      "a copy still reads " + std::string(name_of(kind)) + " place " +
                          to_string(physical)});
    }
  }
  return left;
}

MoveChecker::Totals MoveChecker::totals() const {
  Totals totals;
  totals.records = records_;
  totals.sequences = runs_.size();
  for (const BlockKind kind : {BlockKind::kState, BlockKind::kPage}) {
    const bool state = kind == BlockKind::kState;
    for (const Block& block : blocks_[static_cast<size_t>(kind)]) {
      if (block.use != Block::Use::kHeld) continue;
      const bool cached = block.owner.kind == OwnerKind::kNode;
      if (state) ++(cached ? totals.slots_cached : totals.slots_held);
      if (!state) ++(cached ? totals.pages_cached : totals.pages_held);
    }
  }
  return totals;
}

}  // namespace memory
