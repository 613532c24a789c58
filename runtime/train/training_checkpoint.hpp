// A training run on disk, exact: after loading one, the run goes on as if it had not stopped.
// One safetensors file: masters and both moments [parameters] fp32, and the run's progress as JSON.
#pragma once

#include <string>

#include "runtime/train/batch_stream.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

struct TrainingProgress {
  uint64_t steps_done = 0, steps_skipped = 0, tokens = 0;
  BatchStream::Position text, examples;
  std::string setup;  // what must be equal for a resumed run to be the same run
};

// Replaces `path` at once, when everything is written. Throws std::runtime_error naming the path.
void save_training(const std::string& path, Trainer& trainer, const TrainingProgress& progress);

// Throws std::runtime_error naming the path and what does not fit, before anything is changed.
TrainingProgress load_training(const std::string& path, const std::string& setup,
                               Trainer& trainer);

}  // namespace runtime
