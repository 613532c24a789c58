// One kind of block in the arena, counted from that kind's end: place 0 touches the end, the edge
// is the outermost place in use. A released block leaves a hole; compact() fills holes from the
// edge, so that what lies beyond the edge stays in one piece.
//
// Invariant: held + holes == extent; a place that a copy reads (pinned) is neither reused nor
// moved.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "memory/commands.hpp"

namespace memory {

// A block that a copy on another stream reads: it stays where it is until the pin falls, even when
// its id is released meanwhile.
struct Pin {
  BlockKind kind = BlockKind::kState;
  uint32_t place = 0;
};

class BlockSide {
 public:
  // `descending`: place 0 is the highest physical index.
  BlockSide(BlockKind kind, uint32_t places_max, bool descending);

  uint32_t places_max() const { return static_cast<uint32_t>(places_.size()); }
  uint32_t extent() const { return extent_; }
  uint32_t held() const { return held_; }
  uint32_t open_holes() const { return static_cast<uint32_t>(holes_.size()); }  // reusable now
  uint32_t read_holes() const { return read_holes_; }  // released, but a copy still reads them
  uint64_t moves() const { return moves_; }
  // The extent after `less` blocks left and `more` came, once everything that may move has moved.
  uint64_t extent_with(uint64_t more, uint64_t less) const;

  Bind acquire_hole();  // the caller has checked open_holes()
  Bind acquire_edge();  // the caller has checked that the place beyond the edge is free
  void release(uint32_t index, uint32_t generation);
  Pin pin(uint32_t index, uint32_t generation);
  void unpin(Pin pin);
  // Moves edge blocks into holes until no hole is left or the edge is pinned.
  void compact(std::vector<MemoryCommand>& commands);

  uint32_t physical(uint32_t place) const { return descending_ ? places_max() - 1 - place : place; }
  uint32_t physical_of(uint32_t index) const { return physical(blocks_.at(index).place); }
  bool is_held(uint32_t index, uint32_t generation) const;
  std::vector<uint32_t> hole_places() const;    // ascending
  std::vector<uint32_t> pinned_places() const;  // ascending
  void check() const;

 private:
  enum class Use : uint8_t { kOutside, kHeld, kHole };
  struct Place {
    uint32_t index = 0;  // virtual index, while held
    Use use = Use::kOutside;
  };
  struct Block {
    uint32_t generation = 1;  // 0 is what a worker knows before the first Bind
    uint32_t place = 0;
    bool held = false;
  };
  Bind bind(uint32_t place);
  void retreat();
  bool pinned(uint32_t place) const { return pins_.count(place) != 0; }

  BlockKind kind_;
  bool descending_;
  std::vector<Place> places_;
  std::vector<Block> blocks_;  // by virtual index
  std::deque<uint32_t>
      free_indices_;          // the one that rested longest first: a stale id keeps failing
  std::set<uint32_t> holes_;  // not pinned
  std::map<uint32_t, uint32_t> pins_;  // place -> pins
  uint32_t extent_ = 0, held_ = 0, read_holes_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace memory
