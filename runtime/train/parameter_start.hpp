// What the parameters of a network are before it has learnt anything.
#pragma once

#include <cstdint>

#include "runtime/model_config.hpp"
#include "runtime/train/parameter_layout.hpp"

namespace runtime {

enum class ParameterStart {
  kNoise,  // every matrix is random
  kLookUp  // attention already repeats, weakly, what followed the current token the last time
};

// masters: [layout.size()]. They depend on the configuration, the start and the seed alone.
void initialise_parameters(const ModelConfig& config, const ParameterLayout& layout,
                           ParameterStart start, uint64_t seed, float* masters);

}  // namespace runtime
