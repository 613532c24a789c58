#include "kernels/cpu/experts.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/rows.hpp"

namespace kernels::cpu {
namespace {

constexpr size_t kChunkFloats = size_t{16} << 20;  // 64 MB for each of the two hidden buffers
constexpr size_t kMaxTopK = 64;

}  // namespace

void ExpertEngine::run(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
                       const ActivationSpec& act, MutableRows out, size_t rows) {
  VERIFY(routing.top_k >= 1 && routing.top_k <= kMaxTopK);
  VERIFY(routing.expert.size() >= rows * routing.top_k);
  VERIFY(routing.weight.size() >= rows * routing.top_k);
  const size_t hidden = weights.front().w1->n();
  const size_t step = std::max<size_t>(1, kChunkFloats / (routing.top_k * hidden));
  for (size_t row = 0; row < rows; row += step) {
    run_chunk(z, weights, routing, act, out, row, std::min(step, rows - row));
  }
}

// Counting sort of the pairs by expert, rows ascending inside an expert.
void ExpertEngine::group_rows(const Routing& routing, size_t experts, size_t first_row,
                              size_t rows) {
  const size_t pairs = rows * routing.top_k;
  const uint32_t* chosen = routing.expert.data() + first_row * routing.top_k;
  count_.assign(experts, 0);
  row_at_.resize(pairs);
  place_.resize(pairs);
  groups_.clear();
  for (size_t i = 0; i < pairs; ++i) {
    VERIFY(chosen[i] < experts);
    ++count_[chosen[i]];
  }
  uint32_t begin = 0;
  for (size_t expert = 0; expert < experts; ++expert) {
    const uint32_t count = count_[expert];
    if (count != 0) groups_.push_back({static_cast<uint32_t>(expert), begin, begin + count});
    count_[expert] = begin;
    begin += count;
  }
  for (size_t i = 0; i < pairs; ++i) {
    const uint32_t place = count_[chosen[i]]++;
    place_[i] = place;
    row_at_[place] = static_cast<uint32_t>(first_row + i / routing.top_k);
  }
}

void ExpertEngine::run_chunk(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
                             const ActivationSpec& act, MutableRows out, size_t first_row,
                             size_t rows) {
  group_rows(routing, weights.size(), first_row, rows);
  const size_t pairs = rows * routing.top_k;
  const size_t hidden = weights[0].w1->n(), width = weights[0].w2->n();
  const MutableRows gate = {gate_.reserve(pairs * hidden), hidden};
  const MutableRows up = {up_.reserve(pairs * hidden), hidden};
  const MutableRows result = {result_.reserve(pairs * width), width};

  sources_.clear();
  for (const Group& group : groups_) {
    sources_.push_back(
        {z, row_at_.data() + group.begin, group.end - group.begin, weights[group.expert].w1->k()});
  }
  std::span<const PackedRows> packed = matmul_.pack(sources_);
  products_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const ExpertWeights& expert = weights[groups_[i].expert];
    products_.push_back(
        {expert.w1.get(), packed[i], {gate.data + groups_[i].begin * hidden, hidden}});
    products_.push_back(
        {expert.w3.get(), packed[i], {up.data + groups_[i].begin * hidden, hidden}});
  }
  matmul_.run(products_);
  pool_.parallel_for(pairs, [&](size_t i, unsigned) {
    glu_row(act, gate.data + i * hidden, up.data + i * hidden, gate.data + i * hidden, hidden);
  });

  sources_.clear();
  for (const Group& group : groups_) {
    sources_.push_back(
        {{gate.data + group.begin * hidden, hidden}, nullptr, group.end - group.begin, hidden});
  }
  packed = matmul_.pack(sources_);
  products_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    products_.push_back({weights[groups_[i].expert].w2.get(),
                         packed[i],
                         {result.data + groups_[i].begin * width, width}});
  }
  matmul_.run(products_);

  pool_.parallel_for(rows, [&](size_t row, unsigned) {
    const float* terms[kMaxTopK];
    for (size_t i = 0; i < routing.top_k; ++i)
      terms[i] = result.data + place_[row * routing.top_k + i] * width;
    weighted_sum_row({terms, routing.top_k},
                     routing.weight.data() + (first_row + row) * routing.top_k,
                     out.data + (first_row + row) * out.ld, width);
  });
}

}  // namespace kernels::cpu
