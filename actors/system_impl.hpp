// What a System holds. Apart from system.hpp so that only actors/ and the actor tests see CAF.
#pragma once

#include <atomic>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <memory>

#include "actors/front_desk.hpp"
#include "actors/messages.hpp"
#include "actors/spill_board.hpp"
#include "actors/system.hpp"

namespace actors {

// Invariant: members that actors point to stand before `actors`, so they outlive it.
struct System::Impl {
  Impl(const runtime::EngineConfig& config, SystemOptions options);
  ~Impl();

  void end(runtime::RequestId request, const kernels::Error& error);
  // The desk is closed: ends every request. `stop`: and the worker's plans with them, after which
  // its memory is of no use.
  void shut(bool stop);
  bool wait_empty(std::chrono::milliseconds timeout);  // without threads: runs what there is to run
  caf::scheduler::test_coordinator* lab() { return lab_; }
  void run_lab();
  // Asks and waits.
  InspectionAnswer inspect(const Inspection& question);

  SystemOptions options;
  FrontDesk desk;
  Telemetry telemetry;
  CancelBoard cancellations;
  SpillBoard spills;
  const bool spilling;                // what is cached is to be written at the end
  std::atomic<bool> stopping{false};  // no request is left for whom a plan could run
  SessionContext context;
  caf::actor_system_config caf_config;
  std::unique_ptr<caf::actor_system> actors;
  GatewayActor gateway;
  SupervisorActor supervisor;

 private:
  caf::scheduler::test_coordinator* lab_ = nullptr;  // testing_scheduler
};

}  // namespace actors
