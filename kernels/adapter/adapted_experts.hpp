// A mixture of experts with low-rank additions: Ops::experts, expert by expert, out of the products
// of an Ops whose rows lie in host memory. Without factors the values are those of Ops::experts, to
// the bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/adapter/low_rank.hpp"

namespace kernels {

// Of one expert; "shared-outer": experts share A of w1 and w3, and B of w2.
struct ExpertLowRanks {
  LowRank w1, w3, w2;
};

struct AdaptedExpertsScratch {
  LowRankScratch low_rank;
  LowRankRows input, gate, up;     // of one expert's rows
  LowRankRows result;              // [rows * top_k, width], in the order of the routing
  LowRankRows output;              // of one expert's rows
  std::vector<uint32_t> places;    // of one expert, in the routing
};

// out[r] = sum over the row's experts, ascending id, acc = fma(weight, y, acc) from +0.
void adapted_experts(Ops& ops, Rows z, std::span<const ExpertWeights> weights,
                     std::span<const ExpertLowRanks> adapters, const Routing& routing,
                     const ActivationSpec& act, MutableRows out, size_t rows,
                     AdaptedExpertsScratch& scratch);

}  // namespace kernels
