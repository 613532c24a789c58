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
// score[g] = (x . gains[g]) / rms(x)
void residual_scores_row(const float* x, std::span<const float* const> gains, float eps,
                         float* score, size_t width);
// One row of Ops::residual_mix.
struct ResidualRow {
  float* prefix;
  const float* sublayer;  // or null
  bool restart;
  std::span<const float* const> sources;  // the bank rows, then the prefix
  const float* gain;
  const float* norm;
  float eps;
  float* out;
  float* score;  // [sources]: those of the bank rows; room for a multiple of 8
};
void residual_mix_row(const ResidualRow& row, size_t width);
// out = sum over i of weight[i] * rows[i], ascending, from +0.
void weighted_sum_row(std::span<const float* const> rows, const float* weight, float* out,
                      size_t width);

const char* rows_target_name();

}  // namespace kernels::cpu
