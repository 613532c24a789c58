// The memory commands of a step plan. A worker
// executes them in the order it receives them. Each is its own type; runtime/step_plan.hpp joins
// them with Forward into one variant.
#pragma once

#include <cstdint>
#include <tuple>
#include <variant>

#include "memory/ids.hpp"

namespace memory {

enum class BlockKind : uint8_t { kState, kPage };

// Gives a virtual id its physical place: before the first command that names the id. No bytes move.
struct Bind {
  BlockKind kind = BlockKind::kState;
  uint32_t id = 0;          // virtual index
  uint32_t generation = 0;  // the worker VERIFYs it is newer than the one it knew
  uint32_t physical = 0;
  // The bytes last belonged to the other kind of block: they are zero-filled, so that no state is
  // ever read as KV rows or the other way round.
  bool zero = false;
  auto fields() { return std::tie(kind, id, generation, physical, zero); }
};

// Copies a block to another place and rebinds its id there: fills the hole that a free left, so
// that the free region stays in one piece.
struct Move {
  BlockKind kind = BlockKind::kState;
  uint32_t id = 0, generation = 0;
  uint32_t from = 0, to = 0;  // physical; the worker VERIFYs that the id lies at `from`
  auto fields() { return std::tie(kind, id, generation, from, to); }
};

// What the cache manager has a worker do; everything else comes from the scheduler.
using MemoryCommand = std::variant<Bind, Move>;

// Zero-fills a working slot: before the sequence's first forward.
struct Clear {
  SlotId slot;
  auto fields() { return std::tie(slot); }
};

// Copies a checkpoint into a working slot: before the forward that continues from it.
struct Restore {
  SlotId from, to;
  auto fields() { return std::tie(from, to); }
};

}  // namespace memory
