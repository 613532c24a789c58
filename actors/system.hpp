// The engine as a Service: starts the actors, passes calls to them, takes them down. The one thing
// apps/ builds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/clock.hpp"
#include "actors/engine_host.hpp"
#include "actors/service.hpp"
#include "runtime/engine_config.hpp"

namespace actors {

struct SystemOptions {
  uint32_t pool_threads = 2;  // CAF threads for all actors without a thread of their own
  bool testing_scheduler =
      false;  // tests: no threads at all, CAF's testing scheduler runs every actor
  Clock clock = steady_now_ns;
  // Called once, from an actor's thread, when the running engine is lost; the reason is also
  // phase().reason. A model that does not load is told by wait_ready() instead.
  std::function<void(const std::string& reason)> on_failure;
  ModelFactory factory;  // empty: what `device` and `model` of the configuration say
};

// Invariant: every submitted sink has received its last event when the destructor returns.
class System final : public Service {
 public:
  // Throws std::invalid_argument naming the setting that cannot work. The model loads in the
  // background.
  static std::unique_ptr<System> start(const runtime::EngineConfig& config,
                                       SystemOptions options = {});
  // Aborts what is open and waits for the actors, which includes the step (or the load) under way.
  ~System() override;

  // Blocks until requests are served; throws std::runtime_error with the reason if that will never
  // be.
  void wait_ready() const;
  // Refuses new requests, waits for the open ones, aborts what is left at the deadline. True:
  // nothing had to be aborted.
  bool drain(std::chrono::milliseconds timeout);
  // After a drain: writes what is cached to `host_cache_dir`, for as long as that takes or the time
  // allows. Empty: there is nowhere to write, a request still runs, or it took too long.
  std::optional<runtime::SpillReport> spill(std::chrono::milliseconds timeout);

  ServicePhase phase() const override;
  bool ready() const override;
  ServiceInfo info() const override;
  kernels::Result<runtime::RequestId> submit(runtime::GenerateRequest request, Sink sink) override;
  void abort(runtime::RequestId request) override;
  uint32_t abort_by_rid(const std::string& rid) override;
  uint32_t abort_all() override;
  ServiceMetrics metrics() override;
  bool flush_cache() override;
  kernels::Result<memory::CacheReport> cache_report(const memory::ReportQuery& query) override;
  kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) override;
  kernels::Result<memory::NodeOutcome> change_node(const memory::NodeOrder& order) override;
  std::vector<NamedRequest> named_requests() override;
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const override;

 private:
  friend class SystemLab;  // tests/support/actor_lab.hpp
  struct Impl;
  explicit System(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace actors
