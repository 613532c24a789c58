// One head of one sequence in the backward pass of KDA: what its forward left and what its reverse
// makes of it. Token rows are padded with zeros to whole chunks of 16; a padded token has neither
// key nor query nor decay, so it changes nothing.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

constexpr size_t kKdaGradChunk = 16;  // tokens between kept states
constexpr size_t kMaxConvWidth = 4;

// The chunked form divides by decays of 8 tokens: e^40 times e^40 is still a float.
constexpr float kChunkedLowerBound = -5.0f;
inline bool in_chunks(const KdaGrad<float>& args) {
  return args.has_lower_bound && args.lower_bound >= kChunkedLowerBound;
}

// Floats of work space for one chunk: of the scan (the decayed states of its tokens and two rows),
// of the chunked form.
constexpr size_t scan_room(size_t d) { return kKdaGradChunk * d * d + 2 * d; }
constexpr size_t chunk_room(size_t d) { return 289 * d + 2 * kKdaGradChunk * kKdaGradChunk; }

struct KdaHeadGrad {
  const KdaGrad<float>& args;
  Sequence sequence;
  size_t head = 0, d = 0;
  float rate = 0;  // exp(a_log)

  // [padded][d]. q and k are normalised, q times d^-1/2 too; v becomes v - S^T k in the forward;
  // the slope of the SiLU of q, k and v becomes the gradient of their convolutions in the reverse.
  float *q = nullptr, *k = nullptr, *v = nullptr, *slope[3] = {};
  float *log_decay = nullptr, *dout = nullptr;  // dout: of the read-out, before the gated norm
  // [padded] sigmoid; factors of the L2 norms.
  float *beta = nullptr, *q_inverse = nullptr, *k_inverse = nullptr;
  float* state = nullptr;  // [chunks + 1][d][d] before each chunk, keys in rows

  // Chunked form only. decay [padded][d]: e^(L - L_mid), L the sum of log-decays in the chunk;
  // bounds [chunks][2][d]: e^L_mid and e^(L_end - L_mid); pairs [chunks][32][16]: P above M.
  float *decay = nullptr, *bounds = nullptr, *pairs = nullptr;

  // Gradients of one chunk, [16][d] and [16], and of the state after it, [d][d].
  float *dq = nullptr, *dk = nullptr, *dv = nullptr, *dg = nullptr, *dbeta = nullptr;
  float* dstate = nullptr;
  float *taps = nullptr, *dtaps = nullptr;  // [3][conv_width][d]
  float* zeros = nullptr;                   // [d]
  float* room = nullptr;                    // of the scan or of the chunked form

  size_t column() const { return head * d; }
  size_t width() const { return args.heads * d; }
  size_t chunks() const { return (sequence.count + kKdaGradChunk - 1) / kKdaGradChunk; }
  size_t tokens(size_t chunk) const {
    const size_t left = sequence.count - chunk * kKdaGradChunk;
    return left < kKdaGradChunk ? left : kKdaGradChunk;
  }
  // The input of the convolution at a token of the sequence, which may lie before it.
  const float* input(size_t part, size_t token, size_t tap) const {
    const size_t back = args.conv_width - 1 - tap;
    if (token < back) return zeros;
    return args.qkv.row(sequence.begin + token - back) + part * width() + column();
  }
};

}  // namespace kernels
