// One pretraining run in a directory: OUT/checkpoint.safetensors (exact resume), OUT/loss.csv and
// loss.svg, OUT/model (the Hugging Face directory that a server loads).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "runtime/train/batch_stream.hpp"
#include "runtime/train/documents.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

struct PretrainingOptions {
  std::string preset;     // geometry, see checkpoint_presets.hpp
  std::string tokenizer;  // directory whose tokenizer files go into OUT/model; may be empty
  std::string directory;  // OUT, created if missing
  std::string initial;    // weights directory to start from; empty: from the seed
  bool quantised = false;  // routed experts seen as MXFP4
  uint64_t seed = 1;
  BatchOptions batch;  // its seed is not used: the run's is
  TrainerOptions trainer;
  uint64_t checkpoint_every = 200, evaluate_every = 200;  // steps; 0: only at the end
  uint64_t stop_after = 0;  // steps of this call; 0: to the end. The schedule is that of the run
};

struct PretrainingResult {
  uint64_t steps = 0, tokens = 0, skipped = 0;
  double loss = 0;           // of the last step
  double held_out_loss = 0;  // nats per token; 0 without held-out documents
  double tokens_per_core_second = 0;  // of this call: user and system time of the process
};

// Continues OUT/checkpoint.safetensors where there is one. held_out may be null. Writes a progress
// line to `progress`. Throws std::runtime_error naming what is wrong.
PretrainingResult pretrain(const PretrainingOptions& options, const Documents& documents,
                           const Documents* held_out, std::ostream& progress);

}  // namespace runtime
