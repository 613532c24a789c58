// Where each layer's cache lies inside a state slot and inside a KV page: arithmetic only.
//   slot: for each KDA layer in order  float[heads, d/32, d, 32] (value tiles of 32, row after row
//   of keys),
//                                      then float[conv_width - 1, 3 * heads * d] (raw projections,
//                                      oldest first)
//   page: for each MLA layer in order  page_tokens rows of [latent kv_lora | shared key d_rope] in
//   the KV dtype
// Invariant: every part starts on a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/model_config.hpp"

namespace runtime {

struct StateLayout {
  struct Kda {
    uint64_t recurrent = 0, conv = 0;  // byte offsets inside a slot
  };
  std::vector<Kda> kda;       // [layers]; zero for MLA layers
  std::vector<uint64_t> mla;  // [layers] byte offset inside a page; zero for KDA layers
  uint64_t state_bytes = 0;   // one slot
  uint64_t page_bytes = 0;    // one page

  StateLayout(const ModelConfig& config, uint32_t page_tokens, kernels::DType kv_dtype);
};

}  // namespace runtime
