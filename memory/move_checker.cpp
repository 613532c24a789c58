#include "memory/move_checker.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {
namespace {

using std::to_string;

std::string text_of(BlockKind kind, const BlockPlace& place) {
  std::string text = std::string(name_of(kind)) + " " + to_string(place.index) + "." +
                     to_string(place.generation);
  if (place.physical != kNowhere) text += "@" + to_string(place.physical);
  return text;
}

std::string text_of(OwnerKind kind, uint64_t id) {
  switch (kind) {
    case OwnerKind::kSequence:
      return "sequence " + to_string(id);
    case OwnerKind::kNode:
      return "the tree";
    default:
      return "nobody";
  }
}

}  // namespace

MoveChecker::MoveChecker(const MoveGeometry& geometry, bool whole)
    : geometry_(geometry), whole_(whole), step_known_(whole) {}

void MoveChecker::fail(std::string_view rule, std::string text) {
  if (!violation_) violation_ = MoveViolation{number_, rule, std::move(text)};
}

std::optional<MoveViolation> MoveChecker::take(const MoveRecord& record) {
  violation_.reset();
  number_ = record.number;
  ++records_;
  if (next_ == 0 && whole_) next_ = 1;
  if (next_ != 0 && record.number != next_)
    fail("order", "number " + to_string(next_) + " was due");
  next_ = record.number + 1;
  switch (record.move) {
    case MoveKind::kBind:
      bind(record);
      break;
    case MoveKind::kMove:
      move(record);
      break;
    case MoveKind::kClear:
    case MoveKind::kRestore:
      start(record);
      break;
    case MoveKind::kAppend:
      append(record);
      break;
    case MoveKind::kWrite:
      write(record);
      break;
    case MoveKind::kSnapshot:
      snapshot(record);
      break;
    case MoveKind::kStepDone:
      step_done(record);
      break;
    case MoveKind::kDonate:
      donate(record);
      break;
    case MoveKind::kEnd:
      end(record);
      break;
    case MoveKind::kFree:
      free(record);
      break;
    case MoveKind::kStageOut:
    case MoveKind::kStageOutDone:
      stage_out(record);
      break;
    case MoveKind::kStageIn:
    case MoveKind::kStageInDone:
      stage_in(record);
      break;
    default:
      fail("order", "no such kind of move: " + to_string(static_cast<int>(record.move)));
  }
  return std::exchange(violation_, std::nullopt);
}

// ---- blocks and places ----

MoveChecker::Block& MoveChecker::at(BlockKind kind, uint32_t index) {
  std::deque<Block>& blocks = blocks_[static_cast<size_t>(kind)];
  if (index >= blocks.size()) {
    Block fresh;
    fresh.use = whole_ ? Block::Use::kFree : Block::Use::kUnknown;
    blocks.resize(size_t{index} + 1, fresh);
  }
  return blocks[index];
}

MoveChecker::Block* MoveChecker::held(const MoveRecord& record, const BlockPlace& place) {
  const uint32_t most = geometry_.region(record.block).blocks;
  if (place.index >= most || place.physical >= most) {
    fail("place", text_of(record.block, place) + " does not exist, there are " + to_string(most));
    return nullptr;
  }
  Block& block = at(record.block, place.index);
  if (block.use == Block::Use::kUnknown) {
    block.use = Block::Use::kHeld;
    block.adopted = true;
    block.generation = place.generation;
    block.physical = place.physical;
    occupy(record, place.physical, place.index);
    return &block;
  }
  if (block.use == Block::Use::kFree || block.generation != place.generation) {
    fail("place", text_of(record.block, place) + " is not held: " +
                      (block.use == Block::Use::kFree ? "it was given back"
                                                      : "its generation is " +
                                                            to_string(block.generation)));
    return nullptr;
  }
  if (block.physical != place.physical) {
    fail("place",
         text_of(record.block, place) + " lies at " + to_string(block.physical) + " in truth");
  }
  return &block;
}

bool MoveChecker::read(BlockKind kind, uint32_t physical) const {
  return readers_[static_cast<size_t>(kind)].contains(physical);
}

// The place must be free, in this kind and in bytes of the other.
void MoveChecker::occupy(const MoveRecord& record, uint32_t physical, uint32_t index) {
  const auto kind = static_cast<size_t>(record.block);
  const auto [found, is_new] = occupants_[kind].try_emplace(physical, index);
  const std::string name(name_of(record.block));
  if (!is_new) {
    fail("overlap", name + " place " + to_string(physical) + " holds " + name + " " +
                        to_string(found->second));
    found->second = index;
  }
  if (read(record.block, physical))
    fail("source", "a copy reads " + name + " place " + to_string(physical));
  const BlockPool::Region& own = geometry_.region(record.block);
  const BlockKind other_kind =
      record.block == BlockKind::kState ? BlockKind::kPage : BlockKind::kState;
  const BlockPool::Region& other = geometry_.region(other_kind);
  const uint64_t begin = own.offset + physical * own.block_bytes, end = begin + own.block_bytes;
  if (end <= other.offset) return;
  const uint64_t first = begin <= other.offset ? 0 : (begin - other.offset) / other.block_bytes;
  const uint64_t last = (end - 1 - other.offset) / other.block_bytes;
  const auto& others = occupants_[1 - kind];
  const auto near = others.lower_bound(static_cast<uint32_t>(std::min<uint64_t>(first, kNowhere)));
  if (near != others.end() && near->first <= last) {
    fail("overlap", name + " place " + to_string(physical) + " shares bytes with " +
                        std::string(name_of(other_kind)) + " " + to_string(near->second) + "@" +
                        to_string(near->first));
  }
}

void MoveChecker::vacate(BlockKind kind, uint32_t physical, uint32_t index) {
  auto& places = occupants_[static_cast<size_t>(kind)];
  const auto found = places.find(physical);
  if (found != places.end() && found->second == index) places.erase(found);
}

void MoveChecker::must_own(const MoveRecord& record, const Block& block) {
  if (block.adopted && block.owner.kind == OwnerKind::kNobody) return;
  if (block.owner == Owner{record.owner_kind, record.owner}) return;
  fail("owner", "it belongs to " + text_of(block.owner.kind, block.owner.id) + ", not to " +
                    text_of(record.owner_kind, record.owner));
}

void MoveChecker::must_be_writable(const MoveRecord& record, const Block& block) {
  if (read(record.block, block.physical)) fail("source", "a copy reads the place it writes");
  if (block.arriving) fail("source", "a copy from the host still fills it");
}

void MoveChecker::must_be_final(const MoveRecord&, const Block& block) {
  if (block.arriving) fail("final", "a copy from the host still fills it");
  if (step_known_ && block.written_step > step_done_) {
    fail("final", "step " + to_string(block.written_step) + " wrote it, and only step " +
                      to_string(step_done_) + " is back");
  }
}

void MoveChecker::bind(const MoveRecord& record) {
  const uint32_t most = geometry_.region(record.block).blocks;
  const BlockPlace& place = record.target;
  if (place.index >= most || place.physical >= most) {
    return fail("place", text_of(record.block, place) + " does not exist, there are " +
                             to_string(most));
  }
  Block& block = at(record.block, place.index);
  if (block.use == Block::Use::kHeld) {
    fail("owner", text_of(record.block, place) + " is held by " +
                      text_of(block.owner.kind, block.owner.id) + " already");
    vacate(record.block, block.physical, place.index);
  }
  if (place.generation <= block.generation && block.use != Block::Use::kUnknown)
    fail("place", "generation " + to_string(block.generation) + " was bound before");
  occupy(record, place.physical, place.index);
  block = Block{};
  block.use = Block::Use::kHeld;
  block.generation = place.generation;
  block.physical = place.physical;
  block.owner = {record.owner_kind, record.owner};
}

void MoveChecker::move(const MoveRecord& record) {
  Block* const block = held(record, record.source);
  if (!block) return;
  if (record.target.index != record.source.index ||
      record.target.generation != record.source.generation) {
    fail("place", "a move changes no id, and it names " + text_of(record.block, record.target));
  }
  if (record.target.physical >= geometry_.region(record.block).blocks)
    return fail("place", "there is no place " + to_string(record.target.physical));
  must_be_writable(record, *block);
  vacate(record.block, block->physical, record.source.index);
  occupy(record, record.target.physical, record.source.index);
  block->physical = record.target.physical;
}

void MoveChecker::free(const MoveRecord& record) {
  Block* const block = held(record, record.source);
  if (!block) return;
  if (block->users > 0) {
    fail("end", "a running sequence still uses " + text_of(record.block, record.source));
  } else if (block->arriving) {
    fail("source", "a copy from the host still fills it");
  } else if (block->owner.kind != record.owner_kind && !block->adopted) {
    fail("owner", "it belonged to " + text_of(block->owner.kind, block->owner.id) + ", not to " +
                      text_of(record.owner_kind, record.owner));
  } else if (record.owner_kind == OwnerKind::kSequence) {
    must_own(record, *block);
  }
  vacate(record.block, block->physical, record.source.index);
  const uint32_t generation = block->generation;
  *block = Block{};
  block->use = Block::Use::kFree;
  block->generation = generation;
}

std::string to_text(const MoveViolation& violation) {
  const std::string where =
      violation.number == 0 ? "at the end" : "record " + to_string(violation.number);
  return where + ", rule \"" + std::string(violation.rule) + "\": " + violation.text;
}

void guard(MoveLog& log, const MoveGeometry& geometry) {
  const auto checker = std::make_shared<MoveChecker>(geometry, true);
  log.listen([checker](const MoveRecord& record) {
    const auto violation = checker->take(record);
    if (violation) std::fprintf(stderr, "move log, %s\n", to_text(*violation).c_str());
    VERIFY(!violation);
  });
}

// ---- copies beside the plans ----

void MoveChecker::stage_out(const MoveRecord& record) {
  auto& readers = readers_[static_cast<size_t>(record.block)];
  if (record.move == MoveKind::kStageOut) {
    const Block* const block = held(record, record.source);
    if (!block) return;
    if (block->owner.kind != OwnerKind::kNode && !block->adopted)
      fail("owner", "only what is the tree's is copied to the host");
    must_be_final(record, *block);
    ++readers[record.source.physical];
    return;
  }
  // The block may have been given back meanwhile, its place not reused.
  const auto found = readers.find(record.source.physical);
  if (found == readers.end()) {
    if (whole_)
      fail("source", "no copy reads place " + to_string(record.source.physical));
    return;
  }
  if (--found->second == 0) readers.erase(found);
}

void MoveChecker::stage_in(const MoveRecord& record) {
  Block* const block = held(record, record.target);
  if (!block) return;
  if (record.move == MoveKind::kStageIn) {
    if (block->arriving) fail("source", "a copy from the host fills it already");
    if (block->users > 0) fail("owner", "a running sequence uses it");
    must_be_writable(record, *block);
    block->arriving = true;
    return;
  }
  if (!block->arriving && !block->adopted) fail("source", "no copy from the host fills it");
  block->arriving = false;
  block->staged = true;
  block->position.reset();
  if (record.position != kNowhere) block->position = record.position;
  block->written_step = 0;
  block->filled = geometry_.page_tokens;
}

}  // namespace memory
