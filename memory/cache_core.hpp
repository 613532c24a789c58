// All accounting of device memory: who owns which slot and page. Owned by the cache manager actor;
// plain, deterministic, no clock, no I/O. It answers events with events; bytes are moved only by
// the worker, on commands.
//
// Invariant, per kind, after every call: free + held by sequences == total, and no block has two
// owners.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "memory/pool.hpp"

namespace memory {

// ---- scheduler -> cache manager ----
// Asks for slots and pages together, or nothing. A sequence that already holds blocks gets more.
struct Reserve {
  SequenceId sequence;
  uint32_t slots = 0;
  uint32_t pages = 0;
  uint64_t ticket = 0;  // echoed in the answer: tells a late answer from a current one
  auto fields() { return std::tie(sequence, slots, pages, ticket); }
};

// Gives back everything the sequence holds; sent exactly once per admission, and not answered: who
// sends it knows that a Reserve behind it finds the room. Idempotent for an unknown sequence.
struct Release {
  SequenceId sequence;
  auto fields() { return std::tie(sequence); }
};
using CacheRequest = std::variant<Reserve, Release>;

// ---- cache manager -> scheduler: one answer per Reserve, one FIFO ----
struct Grant {
  SequenceId sequence;
  uint64_t ticket = 0;
  std::vector<SlotId> slots;
  std::vector<PageId> pages;  // in token order
  std::vector<Bind> binds;    // must be sent to the worker before any plan that names these ids
  auto fields() { return std::tie(sequence, ticket, slots, pages, binds); }
};
struct Refusal {  // nothing was reserved
  SequenceId sequence;
  uint64_t ticket = 0;
  auto fields() { return std::tie(sequence, ticket); }
};
using CacheAnswer = std::variant<Grant, Refusal>;

class CacheCore {
 public:
  explicit CacheCore(std::unique_ptr<Pool> pool);
  CacheAnswer handle(const Reserve& request);
  void handle(const Release& request);
  PoolCounts counts() const;
  size_t owner_count() const;
  void check() const;  // VERIFYs the invariant; called after every message in debug builds

 private:
  struct Held {
    std::vector<SlotId> slots;
    std::vector<PageId> pages;
  };
  std::unique_ptr<Pool> pool_;
  std::unordered_map<SequenceId, Held> held_;
};

}  // namespace memory
