// One head of a KDA layer over the rows of one segment: convolution, norms, gates, recurrence,
// gated output norm.
#pragma once

#include <cstddef>

#include "kernels/ops.hpp"

namespace kernels::cpu {

constexpr size_t kKdaChunk = 32;  // tokens that are prepared before the state's tiles are swept

// What some tokens of a head bring to its state, and what they read out of it.
struct KdaTokens {
  size_t d;
  float* q;  // [chunk][d], as are k, v, decay, out
  float* k;
  float* v;  // the sweep writes over it
  float* decay;
  float* out;
  float* beta;  // [chunk]

  KdaTokens(float* scratch, size_t d_)
      : d(d_),
        q(scratch),
        k(q + kKdaChunk * d),
        v(k + kKdaChunk * d),
        decay(v + kKdaChunk * d),
        out(decay + kKdaChunk * d),
        beta(out + kKdaChunk * d) {}
};

// Floats of scratch that KdaTokens needs.
constexpr size_t kda_token_floats(size_t d) { return 5 * kKdaChunk * d + kKdaChunk; }

struct KdaHeads {
  size_t begin, end;
};

// Reads and writes only these heads' part of the segment's state, so heads and segments may run
// side by side.
void kda_heads(const KdaArgs& args, const Segment& segment, const KdaHeads& heads, float* scratch);

// The recurrence alone, for `count` <= kKdaChunk tokens: what the rest of kda_heads is measured
// against. state: [d / tile][d][tile].
void kda_recurrence(const KdaTokens& tokens, size_t count, float* state);

}  // namespace kernels::cpu
