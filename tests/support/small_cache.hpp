// A real cache over a pool of a given number of blocks, for tests.
#pragma once

#include <memory>
#include <numeric>

#include "memory/hybrid_cache.hpp"

namespace support {

struct SmallCache {
  uint32_t slots = 4, pages = 64, page_tokens = 64;
  uint64_t state_bytes = 64, page_bytes = 64;
  // The two kinds share the bytes of all those blocks; else there are exactly so many of each.
  bool unified = false;
  bool lru = false;
  double host = 0;  // host memory, in multiples of those bytes
};

inline uint64_t arena_bytes(const SmallCache& want) {
  return (want.slots * want.state_bytes + 63) / 64 * 64 + want.pages * want.page_bytes;
}

inline uint64_t host_bytes(const SmallCache& want) {
  return static_cast<uint64_t>(want.host * static_cast<double>(arena_bytes(want)));
}

inline std::unique_ptr<memory::BlockPool> make_small_pool(const SmallCache& want) {
  const memory::ArenaConfig arena{arena_bytes(want), want.state_bytes, want.page_bytes};
  if (want.unified) return memory::make_unified_pool(arena);
  const auto states = static_cast<double>(want.slots * want.state_bytes);
  return memory::make_split_pool(arena, (states + 0.5) / static_cast<double>(arena.arena_bytes));
}

inline memory::HybridCache make_small_cache(const SmallCache& want,
                                            std::unique_ptr<memory::BlockPool> pool) {
  const memory::TreeConfig tree{want.page_tokens, std::lcm(64u, want.page_tokens), 0};
  memory::CacheCosts costs;
  costs.state_bytes = want.state_bytes;
  costs.page_bytes = want.page_bytes;
  return memory::HybridCache(
      tree, std::move(pool),
      want.lru ? memory::make_lru_policy() : memory::make_benefit_policy(costs), host_bytes(want));
}

inline memory::HybridCache make_small_cache(const SmallCache& want) {
  return make_small_cache(want, make_small_pool(want));
}

}  // namespace support
