#include "memory/move_log.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {

bool MoveFilter::matches(const MoveRecord& record) const {
  if (move && record.move != *move) return false;
  if (block && record.block != *block) return false;
  if (owner_kind && (record.owner_kind != *owner_kind || record.owner != owner)) return false;
  const auto named = [&](const BlockPlace& place) {  // generation 0: the move has no such side
    return place.generation != 0 && place.index == *index;
  };
  return !index || named(record.source) || named(record.target);
}

MoveLog::MoveLog(uint32_t capacity) : mask_(capacity - 1) {
  VERIFY(std::has_single_bit(capacity));
  ring_.reserve(capacity);  // mapped; touched as it fills
}

uint32_t& MoveLog::physical(BlockKind kind, uint32_t index) {
  std::vector<uint32_t>& places = places_[static_cast<size_t>(kind)];
  if (index >= places.size()) places.resize(size_t{index} + 1, kNowhere);
  return places[index];
}

void MoveLog::locate(BlockKind kind, BlockPlace& place) {
  if (place.generation != 0 && place.physical == kNowhere)
    place.physical = physical(kind, place.index);
}

MovePage MoveLog::page(const MoveQuery& query) const {
  MovePage page;
  page.first = first();
  page.next = next();
  if (query.from != 0) {
    for (uint64_t number = std::max(query.from, page.first);
         number < page.next && page.records.size() < query.max; ++number) {
      if (query.filter.matches(at(number))) page.records.push_back(at(number));
    }
    return page;
  }
  for (uint64_t number = page.next; number > page.first && page.records.size() < query.max;) {
    if (query.filter.matches(at(--number))) page.records.push_back(at(number));
  }
  std::reverse(page.records.begin(), page.records.end());
  return page;
}

void MoveLog::append(const MoveRecord& record) {
  const uint64_t number = next_++;
  if (ring_.size() <= mask_) {
    ring_.push_back(record);
  } else {
    ring_[(number - 1) & mask_] = record;
  }
  MoveRecord& kept = ring_[(number - 1) & mask_];
  kept.number = number;
  if (kept.move == MoveKind::kBind || kept.move == MoveKind::kMove) {
    physical(kept.block, kept.target.index) = kept.target.physical;
  } else {
    locate(kept.block, kept.source);
    locate(kept.block, kept.target);
  }
  for (const Listener& listener : listeners_) listener(kept);
}

}  // namespace memory
