// The cache manager actor: owns the accounting of all blocks and the prefixes they hold, answers
// the scheduler in the order it asked.
#pragma once

#include <memory>

#include "actors/messages.hpp"
#include "memory/cache_log.hpp"
#include "memory/hybrid_cache.hpp"

namespace actors {

struct CacheManagerState {
  CacheManagerState() = default;
  static inline const char* name = "cache_manager";
  std::shared_ptr<memory::HybridCache>
      cache;  // its only owner; shared only because CAF copies what it spawns with
  std::shared_ptr<memory::CacheLog> log;  // null: nothing is recorded
};

CacheManagerActor::behavior_type cache_manager(
    CacheManagerActor::stateful_pointer<CacheManagerState> self,
    std::shared_ptr<memory::HybridCache> cache, std::shared_ptr<memory::CacheLog> log,
    Telemetry* telemetry);

}  // namespace actors
