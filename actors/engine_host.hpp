// What the worker's thread owns: device, operations, weights, model, engine. Born and destroyed on
// that thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "actors/text_encoder.hpp"
#include "kernels/device.hpp"
#include "kernels/ops.hpp"
#include "memory/pool.hpp"
#include "runtime/engine.hpp"
#include "runtime/engine_config.hpp"
#include "runtime/model.hpp"

namespace actors {

struct LoadedModel {
  std::shared_ptr<const void> weights;  // what the model points into; outlives it
  std::unique_ptr<runtime::Model> model;
  std::shared_ptr<const runtime::Tokenizer> tokenizer;
  uint32_t max_positions = 0;  // 0: no limit of its own
  std::vector<runtime::TokenId> end_ids;
};
// Throws std::runtime_error naming the file, tensor or key that is wrong.
using ModelFactory =
    std::function<LoadedModel(kernels::Ops& ops, const runtime::ModelOptions& options)>;

ModelFactory model_factory(const runtime::EngineConfig& config);

// Throws std::invalid_argument naming the setting, for all that can be known without the model.
void check_config(const runtime::EngineConfig& config);

// What the other actors are built from once the model is known.
struct EngineFacts {
  ServiceInfo info;
  TextLimits limits;
  runtime::SchedulerConfig scheduler;
  std::unique_ptr<memory::Pool> pool;
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

 private:
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<kernels::Ops> ops_;
  std::shared_ptr<const void> weights_;
  std::unique_ptr<runtime::Engine> engine_;  // destroyed before what it uses
  EngineFacts facts_;
};

}  // namespace actors
