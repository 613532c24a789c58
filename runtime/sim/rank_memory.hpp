// Where one rank's memory goes: weights, recurrent states, KV. What is left over after weights and
// the reserve is the arena that a real or modelled cache manages.
#pragma once

#include <cstdint>

namespace runtime {

struct RankMemory {
  uint64_t device_bytes = 0;
  uint64_t weight_bytes = 0;   // of the rank that holds most
  uint64_t reserve_bytes = 0;  // activations, graphs, communication buffers
  uint64_t arena_bytes = 0;    // states and KV
  uint64_t state_bytes = 0;    // one slot on this rank: its heads of its layers, conv window too
  // One logical token of context on this rank. Sharded by position a rank holds every n-th token
  // whole, so this is a mean and a fraction.
  double kv_bytes_per_token = 0;

  uint64_t slots(double state_share) const;      // a split arena
  uint64_t kv_tokens(double state_share) const;  // logical tokens, a split arena
};

}  // namespace runtime
