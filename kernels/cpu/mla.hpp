// Absorbed MLA attention over paged rows [latent | k_r], one task of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.hpp"

namespace kernels::cpu {

constexpr size_t kMlaTaskRows = 8;  // query rows that share a pass over the pages
constexpr size_t kMlaTaskHeads = 16;

// Rows [row_begin, row_end) of a segment (relative to it) for heads [head_begin, head_end).
struct MlaTask {
  const Segment* segment;
  uint32_t row_begin, row_end;
  uint32_t head_begin, head_end;
};

struct MlaAttention {
  const MlaArgs* args;
  const BatchView* batch;
  uint32_t first_row;     // batch row of row 0 of the two buffers below
  const float* q_latent;  // [rows, heads, kv_lora]: queries folded through absorb_k
  float* out;             // [rows, heads, kv_lora]: attention over latents, before absorb_v
};

// Cache row of an absolute position of a segment.
std::byte* mla_cache_row(const MlaArgs& args, const BatchView& batch, const Segment& segment,
                         size_t position);

// Normalises the latent part of one raw row and stores it in the cache's dtype. normed [kv_lora +
// d_rope] is scratch.
void mla_append(const MlaArgs& args, const float* ckv, std::byte* target, float* normed);

size_t mla_scratch(const MlaArgs& args);  // floats
void mla_attend(const MlaAttention& attention, const MlaTask& task, float* scratch);

}  // namespace kernels::cpu
