// All memory for states and KV pages: one arena, states from its low end, pages from its high end.
// In a unified pool the free region between them belongs to whoever needs it first; in a split pool
// a border fixed at the start divides the arena. Virtual ids only: a move changes no id.
//
// Invariant: after settle() every hole either waits for a copy that reads it or its side's edge
// (pending) or, in a split pool, is free; a failed acquire changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/block_side.hpp"
#include "memory/commands.hpp"
#include "memory/ids.hpp"

namespace memory {

struct ArenaConfig {
  uint64_t arena_bytes = 0;
  uint64_t state_bytes = 0;  // one slot's envelope
  uint64_t page_bytes = 0;   // one page's envelope
};

// One kind of block, in blocks. free: could be handed out as this kind now, if the other kind asks
// for nothing; pending: released, but not usable by the other kind (or by anybody) before a pin
// falls.
struct KindCounts {
  uint32_t total = 0, free = 0, held = 0, pending = 0;
};

struct BlockCounts {
  KindCounts states, pages;
};

struct BlockWant {
  uint64_t slots = 0, pages = 0;
};

class BlockPool {
 public:
  struct Blocks {
    std::vector<SlotId> slots;
    std::vector<PageId> pages;
  };
  // Where a kind lies in the arena: physical block b starts at offset + b * block_bytes. The two
  // regions of a unified pool overlap.
  struct Region {
    uint64_t offset = 0, block_bytes = 0;
    uint32_t blocks = 0;
  };
  // The arena as it is, to be drawn to scale: places count from the kind's own end.
  struct SideLayout {
    Region region;
    uint32_t extent = 0;
    std::vector<uint32_t> holes, pinned;
  };
  struct Layout {
    uint64_t arena_bytes = 0;
    bool unified = false;
    SideLayout states, pages;
  };

  // `border`: where pages begin in a split pool; none: unified.
  BlockPool(const ArenaConfig& config, std::optional<uint64_t> border);

  bool unified() const { return !border_; }
  // Would `want` fit if `yield` were released first?
  bool fits(BlockWant want, BlockWant yield = {}) const;
  // All of it or nothing. Appends the moves that make room and one Bind per block, in the order in
  // which the worker must see them.
  [[nodiscard]] std::optional<Blocks> acquire(BlockWant want, std::vector<MemoryCommand>& commands);
  void release(SlotId slot);  // VERIFYs the generation
  void release(PageId page);
  // Joins the free region again; called once after the last change of a message, so that a block
  // released and one acquired by the same message cost no move.
  void settle(std::vector<MemoryCommand>& commands);

  Pin pin(SlotId slot) { return states_.pin(slot.index, slot.generation); }
  Pin pin(PageId page) { return pages_.pin(page.index, page.generation); }
  void unpin(Pin pin);

  bool holds(SlotId slot) const { return states_.is_held(slot.index, slot.generation); }
  bool holds(PageId page) const { return pages_.is_held(page.index, page.generation); }
  uint32_t physical(SlotId slot) const { return states_.physical_of(slot.index); }
  uint32_t physical(PageId page) const { return pages_.physical_of(page.index); }
  BlockCounts counts() const;
  uint64_t moves(BlockKind kind) const { return side(kind).moves(); }
  // What an otherwise empty pool could hold beside `slots` states.
  uint64_t pages_beside(uint64_t slots) const;
  const Region& state_region() const { return state_region_; }
  const Region& page_region() const { return page_region_; }
  Layout layout() const;
  void check() const;  // VERIFYs the invariant

 private:
  const BlockSide& side(BlockKind kind) const {
    return kind == BlockKind::kState ? states_ : pages_;
  }
  uint64_t states_end(uint64_t extent) const { return extent * state_region_.block_bytes; }
  uint64_t pages_begin(uint64_t extent) const {
    return page_region_.offset + (page_region_.blocks - extent) * page_region_.block_bytes;
  }
  Bind take(BlockSide& own, BlockSide& other, std::vector<MemoryCommand>& commands);
  bool edge_is_free(const BlockSide& own) const;
  bool must_zero(BlockKind kind);

  uint64_t arena_bytes_;
  std::optional<uint64_t> border_;
  Region state_region_, page_region_;
  BlockSide states_, pages_;
  // Bytes below state_mark_ last belonged to a state, bytes from page_mark_ on to a page, those
  // between were never used (and are zero). state_mark_ <= page_mark_.
  uint64_t state_mark_ = 0, page_mark_ = 0;
};

// Both throw std::invalid_argument when the arena is too small for one slot and one page.
std::unique_ptr<BlockPool> make_unified_pool(const ArenaConfig& config);
// `state_share`: the part of the arena that states get, between 0 and 1.
std::unique_ptr<BlockPool> make_split_pool(const ArenaConfig& config, double state_share);

}  // namespace memory
