// From a weights directory to a model with its tokenizer and limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/engine_config.hpp"
#include "runtime/model.hpp"
#include "runtime/tokenizer.hpp"

namespace actors {

struct LoadedModel {
  std::unique_ptr<runtime::Model> model;
  std::shared_ptr<const runtime::Tokenizer> tokenizer;  // nullptr: token ids only
  uint32_t max_positions = 0;                           // 0: no limit of its own
  std::vector<runtime::TokenId> end_ids;
  // What computing a token again costs, and each position before it on top: what eviction weighs.
  double flops_per_token = 1, flops_per_token_pair = 0;
  uint64_t digest = 0;  // of the weights and config.json
};
// Throws std::runtime_error naming the file, tensor or key that is wrong.
using ModelFactory =
    std::function<LoadedModel(kernels::Ops& ops, const runtime::ModelOptions& options)>;

// What `device` and `model` of the configuration say.
ModelFactory model_factory(const runtime::EngineConfig& config);

}  // namespace actors
