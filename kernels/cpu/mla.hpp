// Absorbed MLA attention over paged rows [latent | k_r], one task of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.hpp"

namespace kernels::cpu {

constexpr size_t kMlaTaskQueries = 128;  // query rows times heads that share a pass over the pages

// Rows [row_begin, row_end) of a segment (relative to it) for heads [head_begin, head_end), over
// the positions of spans [span_begin, span_end).
struct MlaTask {
  const Segment* segment;
  uint32_t row_begin, row_end;
  uint32_t head_begin, head_end;
  uint32_t span_begin, span_end;
  // Where the sums of all spans go when several tasks share them, mla_partial_floats() for each
  // span; null: this task has all spans and finishes by itself.
  float* partials;

  size_t queries() const { return size_t{row_end - row_begin} * (head_end - head_begin); }
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

// Queries are scored in groups of 8 or 16, widths walked in sixteens.
constexpr size_t mla_padded_queries(size_t queries) { return (queries + 7) / 8 * 8; }
constexpr size_t mla_padded_width(size_t width) { return (width + 15) / 16 * 16; }

uint32_t mla_spans(const Segment& segment, uint32_t row_end);  // spans that rows < row_end see
size_t mla_partial_floats(const MlaArgs& args, size_t queries);
size_t mla_scratch(const MlaArgs& args);  // floats
void mla_attend(const MlaAttention& attention, const MlaTask& task, float* scratch);
// After all tasks that share `task`'s partials: merges them for query `query` and writes its
// output.
void mla_finish(const MlaAttention& attention, const MlaTask& task, size_t query);

}  // namespace kernels::cpu
