// The scheduler actor: feeds SchedulerFeed, sends what comes out. The only one who sends to the
// worker.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>

#include "actors/messages.hpp"

namespace actors {

struct SchedulerState {
  SchedulerState() = default;
  static inline const char* name = "scheduler";
  std::optional<SchedulerFeed> feed;
  WorkerActor worker;
  CacheManagerActor cache_manager;
  std::unordered_map<uint64_t, SessionActor> sessions;  // by request; erased with its last batch
  std::set<uint64_t> timers_us;  // the ticks under way, by the time they are meant for
  uint32_t rank_group = 0;
  Clock clock;
};

struct SchedulerStart {
  runtime::SchedulerConfig config;
  FeedContext context;
  WorkerActor worker;
  CacheManagerActor cache_manager;
};

SchedulerActor::behavior_type scheduler(SchedulerActor::stateful_pointer<SchedulerState> self,
                                        SchedulerStart start);

}  // namespace actors
