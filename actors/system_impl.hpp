// What a System holds. Apart from system.hpp so that only actors/ and the actor tests see CAF.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <memory>

#include "actors/front_desk.hpp"
#include "actors/messages.hpp"
#include "actors/system.hpp"

namespace actors {

// Invariant: members that actors point to stand before `actors`, so they outlive it.
struct System::Impl {
  Impl(const runtime::EngineConfig& config, SystemOptions options);
  ~Impl();

  void end(runtime::RequestId request, const kernels::Error& error);
  void end_all(const kernels::Error& error);
  bool wait_empty(std::chrono::milliseconds timeout);  // without threads: runs what there is to run
  caf::scheduler::test_coordinator* lab() { return lab_; }
  void run_lab();

  SystemOptions options;
  FrontDesk desk;
  Telemetry telemetry;
  CancelBoard cancellations;
  SessionContext context;
  caf::actor_system_config caf_config;
  std::unique_ptr<caf::actor_system> actors;
  GatewayActor gateway;
  SupervisorActor supervisor;

 private:
  caf::scheduler::test_coordinator* lab_ = nullptr;  // own_thread_only
};

}  // namespace actors
