// How many operations our executor calls in one forward, and how many kernels they would be if each
// step of their definitions were one: what a decode step launches before anything is fused.
#pragma once

#include <cstdint>

#include "runtime/sim/model_geometry.hpp"

namespace runtime {

// Calls of kernels::Ops by one forward that wants one row of logits.
struct ExecutorCalls {
  uint32_t embed = 0, matmul = 0, rms_norm = 0, add = 0, glu = 0, residual_scores = 0,
           residual_mix = 0, kda = 0, mla = 0, route = 0, experts = 0;
  bool operator==(const ExecutorCalls&) const = default;
  uint32_t total() const {
    return embed + matmul + rms_norm + add + glu + residual_scores + residual_mix + kda + mla +
           route + experts;
  }
};
ExecutorCalls executor_calls(const ModelGeometry& geometry);

// Kernels beyond those that a StepModel prices without fusions.
double unfused_launches(const ModelGeometry& geometry);

}  // namespace runtime
