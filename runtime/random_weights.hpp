// Seeded random weights for every tensor of a model, with the scales chosen so that every part has
// influence: unit variance through the projections, decays from "forgets at once" to "remembers
// hundreds of tokens", even routing.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/model_config.hpp"
#include "runtime/safetensors_writer.hpp"

namespace runtime {

struct RandomWeightsOptions {
  uint64_t seed = 1;
  std::string prefix;          // before every tensor name ("language_model." for K3)
  bool mxfp4_experts = false;  // routed experts packed, else bf16
  // Damps the head's rows of ids that are no printable ASCII and no message markup, so that a small
  // random model writes readable nonsense instead of broken UTF-8. Only for vocabularies of single
  // bytes.
  bool readable_head = false;
};

void add_random_weights(const ModelConfig& config, const RandomWeightsOptions& options,
                        SafeTensorsWriter& writer);

}  // namespace runtime
