// The residual stream of one forward pass, with or without Attention Residuals.
// With them, a sublayer reads a softmax mix of the bank (prefix sums at the starts of earlier
// blocks) and the running prefix; the mix itself never enters the sum. Invariant: the prefix and
// the bank rows hold raw sums; they are scratch of one forward and nothing of them is cached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/aligned_floats.hpp"
#include "runtime/model_config.hpp"
#include "runtime/packed_weights.hpp"

namespace runtime {

// Weights of one mix: its gain w_norm * w_proj, [hidden]; empty for a layer without mix.
using MixGain = std::vector<float>;
MixGain load_mix_gain(PackedWeights& weights, const std::string& norm, const std::string& proj,
                      size_t hidden);

class ResidualStream {
 public:
  ResidualStream(const ModelConfig& config, size_t max_rows);

  // Starts a forward of `rows` rows; the embedding goes into what is returned.
  kernels::MutableRows begin(size_t rows);
  // What layer `layer`'s attention reads. At the start of a block it also banks the prefix and
  // restarts it.
  kernels::Rows attention_input(kernels::Ops& ops, uint32_t layer, const MixGain& gain);
  kernels::Rows ffn_input(kernels::Ops& ops, const MixGain& gain);
  void add(kernels::Ops& ops, kernels::Rows sublayer);  // prefix += sublayer output
  // Rows [first, first + count) as the head reads them, into out [count, hidden].
  void read_out(kernels::Ops& ops, const MixGain& gain, size_t first, size_t count,
                kernels::MutableRows out);

 private:
  kernels::Rows mix(kernels::Ops& ops, const MixGain& gain);

  size_t hidden_;
  uint32_t block_;  // layers per bank row; 0: ordinary residuals
  float eps_;
  size_t rows_ = 0;
  std::vector<RowBuffer>
      sums_;  // [bank rows + 1][max_rows, hidden]: the bank in push order, then the prefix
  size_t banked_ = 0;
  bool prefix_empty_ = true;         // just after a push
  RowBuffer mixed_;                  // [max_rows, hidden]
  std::vector<kernels::Rows> bank_;  // arguments of one mix
};

}  // namespace runtime
