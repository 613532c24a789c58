// One training run in a directory: OUT/checkpoint.safetensors (exact resume), OUT/loss.csv and
// loss.svg, held_out.csv, and what the run's subject writes there.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "runtime/train/batch_stream.hpp"
#include "runtime/train/documents.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

struct RunOptions {
  std::string directory;  // OUT, created if missing
  uint64_t seed = 1;
  BatchOptions batch;  // its seed is not used: the run's is
  TrainerOptions trainer;
  uint64_t checkpoint_every = 200, evaluate_every = 200;  // steps; 0: only at the end
  uint64_t stop_after = 0;  // steps of this call; 0: to the end. The schedule is that of the run
};

struct RunResult {
  uint64_t steps = 0, tokens = 0, skipped = 0;
  double loss = 0;           // of the last step
  double held_out_loss = 0;  // nats per token of text, see held_out.hpp; 0 without documents
  double tokens_per_core_second = 0;  // of this call: user and system time of the process
};

// What a run trains.
struct TrainingSubject {
  Trainer& trainer;
  std::string setup;            // what must be equal in a resumed run, beside the run's options
  std::function<void()> begin;  // sets the masters of a new run
  std::function<void()> write;  // writes the result so far, at every checkpoint
};

// Continues OUT/checkpoint.safetensors where there is one. held_out may be null. Writes a progress
// line to `progress`. Throws std::runtime_error naming what is wrong.
RunResult run_training(const RunOptions& options, const TrainingSubject& subject,
                       const Documents& documents, const Documents* held_out,
                       std::ostream& progress);

}  // namespace runtime
