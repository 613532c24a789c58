// Top-k routing of one row: selection by biased score, weights from the unbiased ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.hpp"

namespace kernels::cpu {

// score [experts] holds sigmoid(logits). Writes the chosen experts in ascending id and their
// weights, both [top_k]. Ties go to the lower id; a NaN score is chosen last.
void choose_experts(const RouteArgs& args, const float* score, uint32_t* expert, float* weight);

}  // namespace kernels::cpu
