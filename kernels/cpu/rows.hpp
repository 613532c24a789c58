// Row operations between the matrix products, compiled per SIMD target. Each handles a range of
// rows; callers cut rows over threads. Widths are in floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops.hpp"

namespace kernels::cpu {

void rms_norm_row(const float* x, const float* weight, float eps, float* y, size_t width);
void add_row(const float* x, float* y, size_t width);  // y += x
void glu_row(const ActivationSpec& act, const float* gate, const float* up, float* out,
             size_t width);
void sigmoid_row(const float* x, float* y, size_t width);
void sigmoid_gate_row(const float* gate, float* y, size_t width);  // y *= sigmoid(gate)
// out = the attention-residual mix of `sources`; score [sources.size() rounded up to 8] is
// scratch.
void residual_mix_row(std::span<const float* const> sources, const float* gain, float eps,
                      float* out, size_t width, float* score);
// out = sum over i of weight[i] * rows[i], ascending, from +0.
void weighted_sum_row(std::span<const float* const> rows, const float* weight, float* out,
                      size_t width);

const char* rows_target_name();

}  // namespace kernels::cpu
