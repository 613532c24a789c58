// Writes a random model as a Hugging Face directory: config.json, model.safetensors, and the
// tokenizer's two files.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

struct CheckpointOptions {
  std::string preset;     // see checkpoint_presets.hpp
  std::string directory;  // created if missing; files in it are overwritten
  uint64_t seed = 1;      // the same seed gives the same bytes on every machine
};

// Throws std::runtime_error naming the preset or file.
void write_checkpoint(const CheckpointOptions& options);

}  // namespace runtime
