// What the worker's thread owns: device, operations, model, engine. Born and destroyed on
// that thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/model_loading.hpp"
#include "actors/service.hpp"
#include "actors/text_encoder.hpp"
#include "kernels/device.hpp"
#include "kernels/ops.hpp"
#include "memory/cache_log.hpp"
#include "memory/hybrid_cache.hpp"
#include "memory/move_log_file.hpp"
#include "runtime/engine.hpp"
#include "runtime/engine_config.hpp"
#include "runtime/scheduler_log.hpp"

namespace actors {

// What the other actors are built from once the model is known.
struct EngineFacts {
  ServiceInfo info;
  TextLimits limits;
  runtime::SchedulerConfig scheduler;
  std::shared_ptr<memory::HybridCache> cache;
  std::shared_ptr<memory::MoveLogWriter> move_log;  // nullptr: no file is wanted
  bool check_moves = false;
  std::shared_ptr<runtime::SchedulerLog> scheduler_log;  // both or neither
  std::shared_ptr<memory::CacheLog> cache_log;
  uint64_t arithmetic_id = 0;  // equal ids: equal bytes for equal tokens
  std::shared_ptr<const runtime::Tokenizer> tokenizer;
};

struct StepOutcome {
  uint32_t rank_group = 0;
  std::optional<runtime::StepResult> result;  // iff the plan held a Forward
  std::optional<std::string> failure;  // the engine is lost: its memory no longer matches the plans
};

class EngineHost {
 public:
  // Loads the model, divides the arena and builds the engine. Throws std::runtime_error or
  // std::invalid_argument.
  EngineHost(const runtime::EngineConfig& config, const ModelFactory& factory);
  EngineFacts take_facts() { return std::move(facts_); }  // once
  StepOutcome run(const runtime::StepPlan& plan);         // never throws
  std::optional<runtime::SpillReport> take_spilled() { return engine_->take_spilled(); }

 private:
  void open_spill(const runtime::EngineConfig& config, const runtime::CacheGeometry& geometry);

  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<kernels::Ops> ops_;
  std::unique_ptr<runtime::Engine> engine_;  // destroyed before what it uses
  EngineFacts facts_;
};

}  // namespace actors
