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
  auto fields() { return std::tie(kind, id, generation, physical); }
};

// Zero-fills a working slot: before the sequence's first forward.
struct Clear {
  SlotId slot;
  auto fields() { return std::tie(slot); }
};

}  // namespace memory
