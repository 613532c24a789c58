// The memory commands of a step plan. A worker
// executes them in the order it receives them. Each is its own type; runtime/step_plan.hpp joins
// them with Forward into one variant.
#pragma once

#include <cstdint>
#include <tuple>
#include <variant>
#include <vector>

#include "memory/ids.hpp"
#include "memory/prefix_hash.hpp"

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

// Copies a block that is about to leave the device to host memory, under a fresh name. Precedes the
// Bind or Move that gives its place to another, so on a CPU the mailbox order makes the copy safe.
// (On a GPU it runs on a side stream: the block is pinned in the pool, which neither reuses nor
// moves it, until the copy's event has come back as a message.)
struct StageOut {
  BlockKind kind = BlockKind::kState;
  uint32_t id = 0, generation = 0;
  HostBlock host;
  auto fields() { return std::tie(kind, id, generation, host); }
};

// Copies it back into a block that is bound by now; the host's copy stays. A copy whose bytes are
// not those that were staged out is told with the next result (StepResult::lost), and every row
// that names the block until its next Bind is void.
struct StageIn {
  BlockKind kind = BlockKind::kState;
  HostBlock host;
  uint32_t id = 0, generation = 0;
  auto fields() { return std::tie(kind, host, id, generation); }
};

// The host's copy is of no use any more.
struct Discard {
  HostBlock host;
  auto fields() { return std::tie(host); }
};

// A copy to be written to a file: the host's, or (`host` is 0) the block's own bytes.
struct SpillItem {
  BlockKind kind = BlockKind::kState;
  PrefixPoint at;
  HostBlock host;
  uint32_t id = 0, generation = 0;
  auto fields() { return std::tie(kind, at, host, id, generation); }
};

// Writes copies to the worker's spill file, in this order, until the deadline of the steady clock.
struct Spill {
  std::vector<SpillItem> items;
  uint64_t deadline_ns = 0;
  auto fields() { return std::tie(items, deadline_ns); }
};

// What the cache manager has a worker do; everything else comes from the scheduler.
using MemoryCommand = std::variant<Bind, Move, StageOut, StageIn, Discard, Spill>;

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
