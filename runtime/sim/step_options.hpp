// What a modelled server is started with beside its layout.
#pragma once

#include <cstdint>

#include "runtime/sim/model_geometry.hpp"

namespace runtime {

enum class Stack : uint8_t {
  kBringUp,  // one kernel an operation, nothing rides inside another or beside it
  kTuned,    // fused kernels in a captured graph, independent ones on a second stream
};

struct StepOptions {
  Stack stack = Stack::kTuned;
  KvType kv = KvType::kBf16;
  // Prefill with whole experts on each rank: the ranks divide tokens among them for mixes, norms
  // and the up-projection.
  bool sequence_parallel = false;
  double memory_fraction = 0.9;  // of a device's memory, for weights, states and KV
  double extra_launches = 0;     // shortest kernels of a step that the list of operations lacks
};

}  // namespace runtime
