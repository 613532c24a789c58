// What a modelled server is started with beside its layout.
#pragma once

#include "runtime/sim/model_geometry.hpp"

namespace runtime {

// What was done to a decode step's kernels, by eras: without any of it every operation is a launch
// of its own. A step that also prefills is not replayed from a captured graph: only `launches`
// matters to it.
struct Fusions {
  bool launches = true;  // products of the same rows are one; no casts, copies, spare kernels
  bool kernels = true;   // KDA with its convolution and output norm; residual mix with its norm
  bool communication = true;  // adds, norms and the experts' finalising ride inside all-reduces;
                              // the up-projection is sharded
  bool overlap = true;        // prologues fused, independent kernels on a second stream, the next
                              // kernel's launch inside the last one's drain
};

struct StepOptions {
  KvType kv = KvType::kBf16;
  Fusions fusions;
  double extra_launches = 0;  // small kernels of a step that `launches` does away with
  // Prefill with whole experts on each rank: the ranks divide tokens among them for mixes, norms
  // and the up-projection.
  bool sequence_parallel = false;
  // Decode with whole experts on each rank: rows go to their experts' ranks and come back. Else
  // every rank has all rows, and an all-reduce adds up what the experts made of them.
  bool expert_exchange = false;
  // A decode row drafts a block first, and what is accepted is folded into its state after.
  bool drafts = false;
  double memory_fraction = 0.9;  // of a device's memory, for weights, states and KV
};

inline StepOptions bring_up_options(double extra_launches) {
  StepOptions options;
  options.fusions = {false, false, false, false};
  options.extra_launches = extra_launches;
  return options;
}

}  // namespace runtime
