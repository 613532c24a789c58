// One move of a recurrent state or a KV page, as the move log keeps it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "memory/commands.hpp"
#include "memory/ids.hpp"

namespace memory {

enum class MoveKind : uint8_t {
  kBind,     // target got its place and its owner
  kMove,     // source's place -> target's place; the id stays
  kClear,    // target is zeroed: the working slot of a sequence that starts
  // source (a checkpoint) is copied to target, which starts a sequence at `position`. Without a
  // source it starts from what was staged into the target.
  kRestore,
  kAppend,   // target becomes the next page of the sequence, for `position` on
  // A forward: the sequence's working slot (target) takes in positions [position, position + count)
  // and their rows are written to its pages.
  kWrite,
  kSnapshot,  // source's state at `position` is copied to target, inside the kWrite before it
  kStepDone,  // the result of `step` is back: what it wrote is final
  kDonate,    // source becomes the tree's, at `position` (a page: its first), under node `owner`
  kEnd,       // the sequence has no row in a later plan; `position`: how far it was planned
  kFree,      // source belongs to nobody; see FreeReason
  // Copies beside the plans. From the first to the second of a pair the source's place, or the
  // target, is the copy's: nobody writes it, and no plan names a target.
  kStageOut,      // source (device) -> target (host; its physical is the host's place)
  kStageOutDone,  // source's place may be reused
  kStageIn,       // source (host) -> target (device)
  // target is its owner's now, and final. position: of the block; kNowhere: what appends or starts
  // from it says so.
  kStageInDone,
};
inline constexpr size_t kMoveKinds = 15;

enum class OwnerKind : uint8_t { kNobody, kSequence, kNode };

// Why a kFree.
enum class FreeReason : uint8_t {
  kRoom,      // evicted to make room
  kPathCap,   // its path had too many checkpoints
  kPoisoned,  // a value was not finite
  kDropped,   // its admission ended
  kTwice,     // the tree had this checkpoint already
  kFlushed,   // by hand
};
inline constexpr size_t kFreeReasons = 6;

inline constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

struct BlockPlace {
  uint32_t index = 0, generation = 0;  // virtual
  uint32_t physical = kNowhere;
  bool operator==(const BlockPlace&) const = default;
};

// Written to files as it is, so every byte is named.
struct MoveRecord {
  uint64_t number = 0;  // 1, 2, ...: the order in which the worker sees the moves
  uint64_t step = 0;    // of the forward; of other moves the last one sent before
  uint64_t owner = 0;   // by owner_kind: SequenceId::value, NodeId::index
  MoveKind move = MoveKind::kBind;
  BlockKind block = BlockKind::kState;
  OwnerKind owner_kind = OwnerKind::kNobody;
  uint8_t reason = 0;     // kFree: FreeReason; kBind: 1 = zero-filled
  uint32_t position = 0;  // in tokens
  uint32_t count = 0;     // kWrite: tokens
  BlockPlace source, target;
  uint32_t spare = 0;  // 0

  auto fields() {
    return std::tie(number, step, owner, move, block, owner_kind, reason, position, count,
                    source.index, source.generation, source.physical, target.index,
                    target.generation, target.physical);
  }
  bool operator==(const MoveRecord&) const = default;
};
static_assert(sizeof(MoveRecord) == 64);  // 3 * 8 + 4 * 1 + 2 * 4 + 2 * 12 + 4: one cache line
static_assert(std::is_trivially_copyable_v<MoveRecord>);

// Words for people, in the order of the enums.
inline constexpr std::array<std::string_view, kMoveKinds> kMoveNames = {
    "bind",   "move", "clear", "restore",   "append",         "write",    "snapshot", "step-done",
    "donate", "end",  "free",  "stage-out", "stage-out-done", "stage-in", "stage-in-done"};
inline constexpr std::array<std::string_view, kFreeReasons> kFreeReasonNames = {
    "room", "path-cap", "poisoned", "dropped", "twice", "flushed"};

// "?": a record from a damaged file.
inline std::string_view name_of(MoveKind move) {
  const auto index = static_cast<size_t>(move);
  return index < kMoveKinds ? kMoveNames[index] : "?";
}
inline std::string_view name_of(FreeReason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kFreeReasons ? kFreeReasonNames[index] : "?";
}
inline std::string_view name_of(BlockKind block) {
  return block == BlockKind::kState ? "state" : "page";
}

inline MoveRecord move_of(MoveKind move, BlockKind block) {
  MoveRecord record;
  record.move = move;
  record.block = block;
  return record;
}
inline MoveRecord move_by(MoveKind move, BlockKind block, SequenceId sequence) {
  MoveRecord record = move_of(move, block);
  record.owner_kind = OwnerKind::kSequence;
  record.owner = sequence.value;
  return record;
}
inline MoveRecord move_under(MoveKind move, BlockKind block, NodeId node) {
  MoveRecord record = move_of(move, block);
  record.owner_kind = OwnerKind::kNode;
  record.owner = node.index;
  return record;
}

}  // namespace memory
