// Gradient of a KDA layer between its projections, head by head of each sequence. Where log-decays
// are bounded it runs in chunks of 16 tokens, else token by token.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

// Floats of scratch for sequences of at most `tokens`.
size_t kda_grad_scratch(const KdaGrad<float>& args, size_t tokens);

void kda_grad_heads(const KdaGrad<float>& args, float* scratch);

}  // namespace kernels
