// Gradient of causal attention: per sequence and head, a block of queries against all keys up to
// its last one. Probabilities are computed again; no square of the sequence is kept.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

// Floats of scratch for sequences of at most `tokens`.
size_t attention_grad_scratch(const AttentionGrad<float>& args, size_t tokens);

void attention_grad_heads(const AttentionGrad<float>& args, float* scratch, float* product_scratch);

}  // namespace kernels
