#include "memory/cache_setup.hpp"

#include <stdexcept>
#include <utility>

namespace memory {

std::unique_ptr<HybridCache> make_cache(const CacheSetup& setup) {
  auto policy = make_eviction_policy(setup.eviction, setup.costs);
  if (policy == nullptr)
    throw std::invalid_argument("eviction: \"" + setup.eviction +
                                "\" is unknown; benefit and lru exist");
  auto pool = setup.state_share ? make_split_pool(setup.arena, *setup.state_share)
                                : make_unified_pool(setup.arena);
  return std::make_unique<HybridCache>(setup.tree, std::move(pool), std::move(policy),
                                       setup.host_bytes);
}

}  // namespace memory
