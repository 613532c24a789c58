// Virtual ids. Above the allocator nothing else exists: plans and the scheduler name blocks by
// these, and only the worker's table (changed by Bind) knows the physical place.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>

namespace memory {

// Room for one recurrent state (all layers: recurrent + conv window). `index` is virtual; the
// generation changes on every release, so a stale id is recognised.
struct SlotId {
  uint32_t index = 0;
  uint32_t generation = 0;
  auto operator<=>(const SlotId&) const = default;
  auto fields() { return std::tie(index, generation); }
};

// One KV page (`page_tokens` positions, all attention layers).
struct PageId {
  uint32_t index = 0;
  uint32_t generation = 0;
  auto operator<=>(const PageId&) const = default;
  auto fields() { return std::tie(index, generation); }
};

// A block's copy in host memory. Every copy gets a name of its own, never used again.
struct HostBlock {
  uint64_t value = 0;
  auto operator<=>(const HostBlock&) const = default;
  auto fields() { return std::tie(value); }
};

// A node of the prefix tree. Reused once its node is gone.
struct NodeId {
  uint32_t index = std::numeric_limits<uint32_t>::max();
  auto operator<=>(const NodeId&) const = default;
};

// Pages that hold `positions` positions.
constexpr uint64_t pages_for(uint64_t positions, uint32_t page_tokens) {
  return (positions + page_tokens - 1) / page_tokens;
}

// The running life of one choice of one request; owner of blocks. Never reused in a process.
struct SequenceId {
  uint64_t value = 0;
  auto operator<=>(const SequenceId&) const = default;
  auto fields() { return std::tie(value); }
};

}  // namespace memory

template <>
struct std::hash<memory::SequenceId> {
  size_t operator()(memory::SequenceId id) const noexcept {
    return std::hash<uint64_t>{}(id.value);
  }
};
