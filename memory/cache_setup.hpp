// All that decides how a cache behaves, as one value: two caches of equal setups answer equal
// requests equally.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "memory/block_pool.hpp"
#include "memory/eviction.hpp"
#include "memory/hybrid_cache.hpp"

namespace memory {

struct CacheSetup {
  TreeConfig tree;
  ArenaConfig arena;
  std::optional<double> state_share;  // of a split arena; none: unified
  std::string eviction = "benefit";   // a name of make_eviction_policy()
  CacheCosts costs;
  uint64_t host_bytes = 0;  // of the host tier; 0: none
  auto fields() {
    return std::tie(tree.page_tokens, tree.grid, tree.checkpoints_per_path, arena.arena_bytes,
                    arena.state_bytes, arena.page_bytes, state_share, eviction,
                    costs.flops_per_token, costs.flops_per_token_pair, costs.state_bytes,
                    costs.page_bytes, host_bytes);
  }
};

// Throws std::invalid_argument for an arena that is too small or a policy that is unknown.
std::unique_ptr<HybridCache> make_cache(const CacheSetup& setup);

}  // namespace memory
