// One head of a KDA layer over the rows of one segment: convolution, norms, gates, recurrence,
// gated output norm.
#pragma once

#include <cstddef>

#include "kernels/ops.hpp"

namespace kernels::cpu {

constexpr size_t kKdaChunk =
    32;  // tokens whose inputs are prepared before the state tiles are swept

// Floats of scratch kda_head needs: q, k, v, decay and output [chunk][d]; beta [chunk].
inline size_t kda_scratch(const KdaArgs& args) { return 5 * kKdaChunk * args.d + kKdaChunk; }

struct KdaHeads {
  size_t begin, end;
};

// Reads and writes only these heads' part of the segment's state, so heads and segments may run
// side by side.
void kda_heads(const KdaArgs& args, const Segment& segment, const KdaHeads& heads, float* scratch);

}  // namespace kernels::cpu
