// What the scheduler and the cache manager say to each other. The scheduler opens an admission,
// grows it, donates checkpoints and drops it; the cache manager answers in one FIFO, and every
// answer's commands go to the worker before any plan built after it.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "memory/commands.hpp"
#include "memory/ids.hpp"
#include "memory/move_record.hpp"

namespace memory {

// One position of a cache key: a token id, or (content hash, index) for a piece of an image.
using KeyElement = uint64_t;

// What a prefix is looked up by. Equal elements in different namespaces (adapter and its version,
// cache salt, arithmetic id) never share anything.
struct CacheKey {
  uint64_t name_space = 0;
  std::vector<KeyElement> elements;
  auto fields() { return std::tie(name_space, elements); }
};

// ---- scheduler -> cache manager ----

// Begins an admission: matches the key, locks what it can use, and reserves the rest: all of
// `positions` and a working slot, or nothing.
struct Open {
  SequenceId sequence;
  uint64_t ticket = 0;         // names this admission in later messages; unique, never 0
  CacheKey key;                // every token known now
  uint32_t positions = 0;      // pages for [0, positions)
  uint32_t snapshots = 0;      // slots wished for beside the working one; fewer may be granted
  uint32_t restore_limit = 0;  // no checkpoint beyond this position; < key.elements.size()
  auto fields() { return std::tie(sequence, ticket, key, positions, snapshots, restore_limit); }
};

// Asks for more pages at the end of what the admission has.
struct Grow {
  SequenceId sequence;
  uint64_t ticket = 0;
  uint32_t pages = 0;
  auto fields() { return std::tie(sequence, ticket, pages); }
};

// The plan that copies the checkpoint was sent: the checkpoint may be evicted again.
struct Restored {
  SequenceId sequence;
  uint64_t ticket = 0;
  auto fields() { return std::tie(sequence, ticket); }
};

// The state in `slot`, one of the admission's snapshot slots, is the state after exactly
// `position` positions, and its step's result is back and finite. Slot and the pages below
// `position` go to the tree. Answered with one Refilled.
struct Donate {
  SequenceId sequence;
  uint64_t ticket = 0;
  SlotId slot;
  uint32_t position = 0;         // a multiple of the grid
  std::vector<KeyElement> tail;  // the key's continuation since Open or the last Donate
  bool refill = false;           // wants a slot in return
  auto fields() { return std::tie(sequence, ticket, slot, position, tail, refill); }
};

// Ends the admission: every lock is released, everything it still owns given back. Idempotent for
// an unknown ticket, and not answered with more than commands.
struct Drop {
  SequenceId sequence;
  uint64_t ticket = 0;
  bool poisoned = false;  // it computed a value that is not finite: what it donated goes too
  auto fields() { return std::tie(sequence, ticket, poisoned); }
};

// The worker found other bytes in these copies than were staged out: they are never used again.
struct Forget {
  std::vector<HostBlock> blocks;
  auto fields() { return std::tie(blocks); }
};

using CacheRequest = std::variant<Open, Grow, Restored, Donate, Drop, Forget>;

// ---- cache manager -> scheduler ----

struct Opened {
  SequenceId sequence;
  uint64_t ticket = 0;
  SlotId working;
  std::vector<SlotId> snapshots;
  std::vector<PageId> pages;  // of [0, positions) in token order; the tree's come first
  // [0, shared) is there already, in the tree's pages or staged in: read, never written. A multiple
  // of the page.
  uint32_t shared = 0;
  std::optional<SlotId> checkpoint;  // to restore the working slot from
  // The commands of this reply stage a state into the working slot, and KV into pages. Without it
  // and without a checkpoint the slot must be cleared.
  bool staged = false;
  uint32_t position = 0;  // of the state: the first position to compute
  uint32_t branch = 0;    // a position > `position` where a checkpoint is worth planting; 0 = none
  auto fields() {
    return std::tie(sequence, ticket, working, snapshots, pages, shared, checkpoint, staged,
                    position, branch);
  }
};

struct Grown {
  SequenceId sequence;
  uint64_t ticket = 0;
  std::vector<PageId> pages;
  auto fields() { return std::tie(sequence, ticket, pages); }
};

// The Open or Grow of this ticket found no room, even by eviction; nothing was reserved.
struct Refused {
  SequenceId sequence;
  uint64_t ticket = 0;
  auto fields() { return std::tie(sequence, ticket); }
};

// One per Donate, in order. The slot is a fresh one, or the donated one itself when the tree
// already had a checkpoint there; none when there was no room or none was asked for.
struct Refilled {
  SequenceId sequence;
  uint64_t ticket = 0;
  std::optional<SlotId> slot;
  auto fields() { return std::tie(sequence, ticket, slot); }
};

using CacheAnswer = std::variant<Opened, Grown, Refused, Refilled>;

// Answers to a run of requests, and the commands they made necessary. The commands go to the worker
// in this order, before any plan that is built with the answers.
struct CacheReply {
  std::vector<MemoryCommand> commands;
  std::vector<CacheAnswer> answers;
  std::vector<MoveRecord> moves;  // the commands, and what became of blocks between them, in order
  bool empty() const { return commands.empty() && answers.empty() && moves.empty(); }
  auto fields() { return std::tie(commands, answers, moves); }
};

}  // namespace memory
