// The two kinds of blocks (states and KV pages) behind one interface, so that how the
// arena is divided between them (split_pool: once, at the start) is nobody else's business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "memory/commands.hpp"
#include "memory/ids.hpp"

namespace memory {

struct PoolConfig {
  uint64_t arena_bytes = 0;  // all memory for blocks
  uint64_t state_bytes = 0;  // one slot's envelope
  uint64_t page_bytes = 0;   // one page's envelope
  double state_share = 0.5;  // split pools: part of the arena given to states
  // no more slots than this (0 = no limit): a split pool gives the rest to pages
  uint32_t max_slots = 0;
};

struct KindCount {  // one kind of block, in blocks
  uint32_t total = 0, free = 0, held = 0;
};

struct PoolCounts {
  KindCount states, pages;
};

class Pool {
 public:
  virtual ~Pool() = default;
  // All of it or nothing; appends one Bind per block to `binds`. Empty: not enough room now.
  struct Blocks {
    std::vector<SlotId> slots;
    std::vector<PageId> pages;
  };
  [[nodiscard]] virtual std::optional<Blocks> acquire(uint32_t slots, uint32_t pages,
                                                      std::vector<Bind>& binds) = 0;
  virtual void release(SlotId slot) = 0;  // VERIFYs the generation
  virtual void release(PageId page) = 0;
  virtual PoolCounts counts() const = 0;
  // Where the kinds lie in the arena: physical block b of a kind starts at offset + b * bytes.
  struct Region {
    uint64_t offset = 0, block_bytes = 0;
    uint32_t blocks = 0;
  };
  virtual Region state_region() const = 0;
  virtual Region page_region() const = 0;
};

// Two static pools. Throws std::invalid_argument when the arena is too small for one slot and one
// page.
std::unique_ptr<Pool> make_split_pool(const PoolConfig& config);

}  // namespace memory
