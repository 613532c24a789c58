#include "kernels/adapter/adapted_experts.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/rows.hpp"

namespace kernels {

namespace {

// The rows that chose one expert: scratch.places of the routing. Leaves the expert's outputs there.
void run_expert(Ops& ops, Rows z, const ExpertWeights& expert, const ExpertLowRanks& adapter,
                size_t top_k, const ActivationSpec& act, MutableRows result,
                AdaptedExpertsScratch& scratch) {
  const size_t count = scratch.places.size(), width = expert.w1->k(), hidden = expert.w1->n();
  const MutableRows x = scratch.input.take(count, width);
  const MutableRows gate = scratch.gate.take(count, hidden), up = scratch.up.take(count, hidden);
  const MutableRows y = scratch.output.take(count, width);
  for (size_t i = 0; i < count; ++i)
    std::copy_n(z.data + scratch.places[i] / top_k * z.ld, width, x.data + i * x.ld);
  ops.matmul(x, *expert.w1, gate, count);
  add_low_rank(ops, adapter.w1, x, gate, count, scratch.low_rank);
  ops.matmul(x, *expert.w3, up, count);
  add_low_rank(ops, adapter.w3, x, up, count, scratch.low_rank);
  ops.glu(act, gate, up, gate, count, hidden);
  ops.matmul(gate, *expert.w2, y, count);
  add_low_rank(ops, adapter.w2, gate, y, count, scratch.low_rank);
  for (size_t i = 0; i < count; ++i)
    std::copy_n(y.data + i * y.ld, width, result.data + scratch.places[i] * result.ld);
}

}  // namespace

void adapted_experts(Ops& ops, Rows z, std::span<const ExpertWeights> weights,
                     std::span<const ExpertLowRanks> adapters, const Routing& routing,
                     const ActivationSpec& act, MutableRows out, size_t rows,
                     AdaptedExpertsScratch& scratch) {
  VERIFY(adapters.size() == weights.size());
  const size_t pairs = rows * routing.top_k, width = weights.front().w2->n();
  const MutableRows result = scratch.result.take(pairs, width);
  for (size_t id = 0; id < weights.size(); ++id) {
    scratch.places.clear();
    for (size_t i = 0; i < pairs; ++i)
      if (routing.expert[i] == id) scratch.places.push_back(static_cast<uint32_t>(i));
    if (scratch.places.empty()) continue;
    run_expert(ops, z, weights[id], adapters[id], routing.top_k, act, result, scratch);
  }
  std::vector<const float*> terms(routing.top_k);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < routing.top_k; ++i)
      terms[i] = result.data + (row * routing.top_k + i) * result.ld;
    cpu::weighted_sum_row(terms, routing.weight.data() + row * routing.top_k,
                          out.data + row * out.ld, width);
  }
}

}  // namespace kernels
