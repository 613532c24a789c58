// Writes the parameters of a training run as a Hugging Face directory.
#pragma once

#include <string>

#include "runtime/train/parameter_store.hpp"

namespace runtime {

struct WeightsExport {
  std::string preset;     // geometry, see checkpoint_presets.hpp
  std::string tokenizer;  // directory with tokenizer files; empty: none are written
  std::string directory;  // created if missing
};

// Throws std::runtime_error naming the file.
void export_weights(const WeightsExport& target, const ParameterStore& parameters);

}  // namespace runtime
