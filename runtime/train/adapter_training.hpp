// Training of an adapter: a run (see training_run.hpp) that also writes OUT/adapter, the PEFT
// directory. The base is read and never written.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "runtime/adapter/adapter_layout.hpp"
#include "runtime/train/training_run.hpp"

namespace runtime {

struct AdapterTrainingOptions : RunOptions {
  std::string model;  // Hugging Face directory of the base
  AdapterSettings adapter;

  AdapterTrainingOptions();  // the recipe for small models
};

struct AdapterTrainingResult : RunResult {
  size_t parameters = 0;                        // of the adapter
  uint64_t base_before = 0, base_after = 0;     // WeightsFile::digest of the base
};

// As run_training. Throws std::invalid_argument for settings that cannot be.
AdapterTrainingResult train_adapter(const AdapterTrainingOptions& options,
                                    const Documents& documents, const Documents* held_out,
                                    std::ostream& progress);

}  // namespace runtime
