// Pretraining: a run (see training_run.hpp) that also writes OUT/model, the Hugging Face directory
// that a server loads.
#pragma once

#include <iosfwd>
#include <string>

#include "runtime/train/parameter_start.hpp"
#include "runtime/train/training_run.hpp"

namespace runtime {

struct PretrainingOptions : RunOptions {
  std::string preset;     // geometry, see checkpoint_presets.hpp
  std::string tokenizer;  // directory whose tokenizer files go into OUT/model; may be empty
  std::string initial;    // weights directory to start from; empty: from the seed
  ParameterStart start = ParameterStart::kNoise;  // where there is no initial directory
  bool quantised = false;  // routed experts seen as MXFP4
};

// As run_training.
RunResult pretrain(const PretrainingOptions& options, const Documents& documents,
                   const Documents* held_out, std::ostream& progress);

}  // namespace runtime
