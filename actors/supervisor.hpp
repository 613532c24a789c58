// Spawns the engine's actors, watches them, and takes everything down in order. One of them lost
// means the engine is lost: every request fails with the reason and the service is not ready any
// more.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "actors/front_desk.hpp"
#include "actors/messages.hpp"
#include "actors/spawning.hpp"
#include "actors/spill_board.hpp"

namespace actors {

struct SupervisorStart {
  runtime::EngineConfig config;
  ModelFactory factory;
  SpawnPolicy spawning;
  GatewayActor gateway;
  std::function<void(const std::string& reason)> on_failure;  // may be empty
  FrontDesk* desk = nullptr;                                  // these outlive all actors
  const std::atomic<bool>* stopping = nullptr;                // the worker runs no more plans
  SpillBoard* spills = nullptr;
  SessionContext* context = nullptr;  // its tokenizer is set here, before the first session
};

struct SupervisorState {
  SupervisorState() = default;
  static inline const char* name = "supervisor";
  SupervisorStart start;
  WorkerActor worker;
  TextWorkerActor text_worker;
  SchedulerActor scheduler;
  CacheManagerActor cache_manager;
};

SupervisorActor::behavior_type supervisor(SupervisorActor::stateful_pointer<SupervisorState> self,
                                          SupervisorStart start);

}  // namespace actors
