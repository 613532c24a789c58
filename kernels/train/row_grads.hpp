// The operations of GradientOps that take one row after the other, compiled per SIMD target.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

constexpr size_t kMaxResidualSources = 64, kMaxChosenExperts = 64;

void norm_grad_rows(const RmsNormGrad<float>& args);
void glu_grad_rows(const GluGrad<float>& args);
inline size_t residual_grad_scratch(const ResidualGrad<float>& args) { return 4 * args.width; }
void residual_grad_rows(const ResidualGrad<float>& args, float* scratch);
void route_grad_rows(const RouteGrad<float>& args);
double cross_entropy_rows(const CrossEntropyGrad<float>& args);

}  // namespace kernels
