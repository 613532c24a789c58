// The worker actor: the one thread that touches a rank's memory. Everything it owns is born and
// dies on that thread.
#pragma once

#include <atomic>
#include <memory>

#include "actors/messages.hpp"
#include "actors/spill_board.hpp"

namespace actors {

struct WorkerState {
  WorkerState() = default;
  static inline const char* name = "worker";
  std::unique_ptr<EngineHost> host;
};

struct WorkerLinks {  // they outlive the worker
  const std::atomic<bool>* stopping = nullptr;
  SpillBoard* spills = nullptr;  // is told of every Spill
};

// Loads the model, reports to the supervisor, then runs plans. Ends with the reason if either
// fails. A plan that it comes to once `stopping` is set is not run: its outcome holds nothing.
WorkerActor::behavior_type worker(WorkerActor::stateful_pointer<WorkerState> self,
                                  runtime::EngineConfig config, ModelFactory factory,
                                  SupervisorActor supervisor, WorkerLinks links);

}  // namespace actors
