#include "memory/block_side.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"

namespace memory {

BlockSide::BlockSide(BlockKind kind, uint32_t places_max, bool descending)
    : kind_(kind), descending_(descending), places_(places_max), blocks_(places_max) {
  // Virtual indices start half-way, so that code which takes one for a place fails at once.
  for (uint32_t i = 0; i < places_max; ++i) {
    free_indices_.push_back((i + places_max / 2) % places_max);
  }
}

uint64_t BlockSide::extent_with(uint64_t more, uint64_t less) const {
  VERIFY(less <= held_);
  const uint64_t least = pins_.empty() ? 0 : uint64_t{pins_.rbegin()->first} + 1;
  return std::max(held_ - less + read_holes_ + more, least);
}

Bind BlockSide::bind(uint32_t place) {
  VERIFY(!free_indices_.empty());
  VERIFY(places_[place].use != Use::kHeld);
  const uint32_t index = free_indices_.front();
  free_indices_.pop_front();
  Block& block = blocks_[index];
  VERIFY(!block.held);
  block.held = true;
  block.place = place;
  places_[place] = {index, Use::kHeld};
  ++held_;
  return {kind_, index, block.generation, physical(place), false};
}

Bind BlockSide::acquire_hole() {
  VERIFY(!holes_.empty());
  const uint32_t place = *holes_.begin();
  holes_.erase(holes_.begin());
  return bind(place);
}

Bind BlockSide::acquire_edge() {
  VERIFY(extent_ < places_max());
  return bind(extent_++);
}

bool BlockSide::is_held(uint32_t index, uint32_t generation) const {
  return index < blocks_.size() && blocks_[index].held && blocks_[index].generation == generation;
}

void BlockSide::release(uint32_t index, uint32_t generation) {
  VERIFY(is_held(index, generation));
  Block& block = blocks_[index];
  block.held = false;
  ++block.generation;
  free_indices_.push_back(index);
  --held_;
  places_[block.place].use = Use::kHole;
  if (pinned(block.place)) {
    ++read_holes_;
  } else {
    holes_.insert(block.place);
  }
}

Pin BlockSide::pin(uint32_t index, uint32_t generation) {
  VERIFY(is_held(index, generation));
  ++pins_[blocks_[index].place];
  return {kind_, blocks_[index].place};
}

void BlockSide::unpin(Pin pin) {
  VERIFY(pin.kind == kind_);
  const auto found = pins_.find(pin.place);
  VERIFY(found != pins_.end());
  if (--found->second != 0) return;
  pins_.erase(found);
  if (places_[pin.place].use == Use::kHole) {
    --read_holes_;
    holes_.insert(pin.place);
  }
}

void BlockSide::retreat() {
  while (extent_ > 0 && places_[extent_ - 1].use == Use::kHole && !pinned(extent_ - 1)) {
    --extent_;
    holes_.erase(extent_);
    places_[extent_].use = Use::kOutside;
  }
}

void BlockSide::compact(std::vector<MemoryCommand>& commands) {
  retreat();
  while (!holes_.empty() && !pinned(extent_ - 1)) {
    const uint32_t hole = *holes_.begin(), edge = extent_ - 1;
    VERIFY(hole < edge);
    VERIFY(places_[edge].use == Use::kHeld);
    holes_.erase(holes_.begin());
    const uint32_t index = places_[edge].index;
    places_[hole] = places_[edge];
    places_[edge].use = Use::kOutside;
    blocks_[index].place = hole;
    --extent_;
    ++moves_;
    commands.push_back(
        Move{kind_, index, blocks_[index].generation, physical(edge), physical(hole)});
    retreat();
  }
}

std::vector<uint32_t> BlockSide::hole_places() const {
  std::vector<uint32_t> found;
  for (uint32_t place = 0; place < extent_; ++place) {
    if (places_[place].use == Use::kHole) found.push_back(place);
  }
  return found;
}

std::vector<uint32_t> BlockSide::pinned_places() const {
  std::vector<uint32_t> found;
  for (const auto& [place, count] : pins_) found.push_back(place);
  return found;
}

void BlockSide::check() const {
  uint32_t held = 0, holes = 0, read = 0;
  for (uint32_t place = 0; place < places_max(); ++place) {
    const Place& here = places_[place];
    VERIFY((here.use == Use::kOutside) == (place >= extent_));
    if (here.use == Use::kHeld) {
      ++held;
      VERIFY(blocks_[here.index].held);
      VERIFY(blocks_[here.index].place == place);
    } else if (here.use == Use::kHole) {
      ++holes;
      read += pinned(place) ? 1 : 0;
      VERIFY(pinned(place) != (holes_.count(place) != 0));
    }
  }
  VERIFY(held == held_);
  VERIFY(holes == holes_.size() + read_holes_);
  VERIFY(read == read_holes_);
  VERIFY(held + holes == extent_);
  VERIFY(held + free_indices_.size() == blocks_.size());
}

}  // namespace memory
