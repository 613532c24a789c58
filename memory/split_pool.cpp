// Two static pools: part of the arena is states, the rest pages, and the border never moves.
//
// Virtual and physical indices are handed out in unrelated orders (virtual: the one that rested
// longest, so a stale id keeps failing; physical: the warmest memory first). Code that takes one
// for the other fails at once.
#include <algorithm>
#include <deque>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/base/verify.hpp"
#include "memory/pool.hpp"

namespace memory {
namespace {

constexpr uint64_t kRegionAlign = 64;  // bytes: one cache line, and the widest vector load

// One kind of block. Invariant: the virtual ids that are not held, and the physical blocks that
// none of them names, are as many.
class BlockTable {
 public:
  BlockTable(BlockKind kind, uint32_t total) : kind_(kind), blocks_(total) {
    free_physical_.reserve(total);
    for (uint32_t i = 0; i < total; ++i) {
      free_physical_.push_back(total - 1 - i);           // a stack: block 0 goes first
      free_virtual_.push_back((i + total / 2) % total);  // a queue that starts half-way
    }
  }

  uint32_t total() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t free() const { return static_cast<uint32_t>(free_physical_.size()); }
  KindCount count() const { return {total(), free(), total() - free()}; }

  // The caller has checked free().
  Bind acquire() {
    VERIFY(!free_physical_.empty());
    VERIFY(!free_virtual_.empty());
    const uint32_t index = free_virtual_.front();
    free_virtual_.pop_front();
    Block& block = blocks_[index];
    VERIFY(!block.held);
    block.held = true;
    block.physical = free_physical_.back();
    free_physical_.pop_back();
    return {kind_, index, block.generation, block.physical};
  }

  void release(uint32_t index, uint32_t generation) {
    VERIFY(index < blocks_.size());
    Block& block = blocks_[index];
    VERIFY(block.held);
    VERIFY(block.generation == generation);
    block.held = false;
    ++block.generation;
    free_physical_.push_back(block.physical);
    free_virtual_.push_back(index);
  }

 private:
  struct Block {
    uint32_t generation = 1;  // 0 is what a worker knows before the first Bind
    uint32_t physical = 0;
    bool held = false;
  };
  BlockKind kind_;
  std::vector<Block> blocks_;  // by virtual index
  std::vector<uint32_t> free_physical_;
  std::deque<uint32_t> free_virtual_;
};

struct Split {
  uint32_t slots = 0, pages = 0;
  uint64_t page_offset = 0;
};

uint64_t align_up(uint64_t bytes) {
  return (bytes + kRegionAlign - 1) / kRegionAlign * kRegionAlign;
}

uint32_t clamp_count(uint64_t blocks) {
  return static_cast<uint32_t>(std::min<uint64_t>(blocks, std::numeric_limits<int32_t>::max()));
}

Split split_arena(const PoolConfig& config) {
  if (config.state_bytes == 0 || config.page_bytes == 0) {
    throw std::invalid_argument("a slot and a page must have a size: got state_bytes " +
                                std::to_string(config.state_bytes) + ", page_bytes " +
                                std::to_string(config.page_bytes));
  }
  if (!(config.state_share > 0.0 && config.state_share < 1.0)) {
    throw std::invalid_argument("state_share must lie between 0 and 1, got " +
                                std::to_string(config.state_share));
  }
  const uint64_t least = align_up(config.state_bytes) + config.page_bytes;
  if (config.arena_bytes < least) {
    throw std::invalid_argument(
        "an arena of " + std::to_string(config.arena_bytes) + " bytes is too small: one slot (" +
        std::to_string(config.state_bytes) + " bytes) and one page (" +
        std::to_string(config.page_bytes) + " bytes) need " + std::to_string(least));
  }
  const auto share =
      static_cast<uint64_t>(static_cast<double>(config.arena_bytes) * config.state_share);
  const uint64_t fits =
      (config.arena_bytes - config.page_bytes - (kRegionAlign - 1)) / config.state_bytes;
  Split split;
  split.slots = clamp_count(std::max<uint64_t>(1, std::min(share / config.state_bytes, fits)));
  if (config.max_slots != 0) split.slots = std::min(split.slots, config.max_slots);
  split.page_offset = align_up(split.slots * config.state_bytes);
  split.pages = clamp_count((config.arena_bytes - split.page_offset) / config.page_bytes);
  return split;
}

class SplitPool : public Pool {
 public:
  SplitPool(const PoolConfig& config, const Split& split)
      : states_(BlockKind::kState, split.slots),
        pages_(BlockKind::kPage, split.pages),
        state_region_{0, config.state_bytes, split.slots},
        page_region_{split.page_offset, config.page_bytes, split.pages} {}

  std::optional<Blocks> acquire(uint32_t slots, uint32_t pages, std::vector<Bind>& binds) override {
    if (states_.free() < slots || pages_.free() < pages) return std::nullopt;
    Blocks blocks;
    blocks.slots.reserve(slots);
    blocks.pages.reserve(pages);
    binds.reserve(binds.size() + slots + pages);
    for (uint32_t i = 0; i < slots; ++i) {
      binds.push_back(states_.acquire());
      blocks.slots.push_back({binds.back().id, binds.back().generation});
    }
    for (uint32_t i = 0; i < pages; ++i) {
      binds.push_back(pages_.acquire());
      blocks.pages.push_back({binds.back().id, binds.back().generation});
    }
    return blocks;
  }

  void release(SlotId slot) override { states_.release(slot.index, slot.generation); }
  void release(PageId page) override { pages_.release(page.index, page.generation); }
  PoolCounts counts() const override { return {states_.count(), pages_.count()}; }
  Region state_region() const override { return state_region_; }
  Region page_region() const override { return page_region_; }

 private:
  BlockTable states_, pages_;
  Region state_region_, page_region_;
};

}  // namespace

std::unique_ptr<Pool> make_split_pool(const PoolConfig& config) {
  return std::make_unique<SplitPool>(config, split_arena(config));
}

}  // namespace memory
