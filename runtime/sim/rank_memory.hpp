// Where one rank's memory goes: weights first, and what is left of the share that a server takes is
// the arena of recurrent states and KV pages, which a real or modelled cache manages.
#pragma once

#include <cstdint>

#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/step_options.hpp"

namespace runtime {

struct RankMemory {
  double weight_bytes = 0;  // of the rank that holds most
  double arena_bytes = 0;   // negative: the weights do not fit
  double state_bytes = 0;   // one slot: this rank's heads and layers, conv windows too
  // A page of `kv_page_tokens` positions on this rank holds that many times `context` logical
  // tokens of a sequence.
  double kv_position_bytes = 0;
  uint32_t context = 1;
  double kv_bytes_per_token() const { return kv_position_bytes / context; }

  // What an arena of which states get `state_share` holds.
  uint64_t slots(double state_share) const;
  uint64_t kv_tokens(double state_share) const;  // logical
};

// Weights of the model's text part alone, as stored; everything else that a server keeps on a
// device is in what `memory_fraction` leaves free.
RankMemory rank_memory(double device_bytes, const ModelGeometry& geometry,
                       const ParallelLayout& layout, const StepOptions& options);

}  // namespace runtime
