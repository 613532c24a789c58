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

// The gains w_norm * w_proj of all mixes: layer by layer that of the attention and of the ffn, then
// that of the readout. Empty where there is nothing to mix.
class ResidualGains {
 public:
  explicit ResidualGains(const ModelConfig& config);
  void load(PackedWeights& weights);  // before the first forward

  size_t count() const { return gains_.size(); }
  const float* gain(size_t mix) const { return gains_[mix].data(); }  // [hidden]

 private:
  using Gain = std::vector<float>;
  Gain load_gain(PackedWeights& weights, const std::string& norm, const std::string& proj) const;

  size_t hidden_;
  uint32_t layers_;
  bool mixes_;
  std::vector<Gain> gains_;
};

class ResidualStream {
 public:
  ResidualStream(const ModelConfig& config, size_t max_rows);

  // Starts a forward of `rows` rows; the embedding goes into what is returned. `gains` must outlive
  // the forward.
  kernels::MutableRows begin(const ResidualGains& gains, size_t rows);
  // What layer `layer`'s attention reads, normalised with weight `norm`. At the start of a block it
  // also banks the prefix and restarts it.
  void attention_input(kernels::Ops& ops, uint32_t layer, const float* norm,
                       kernels::MutableRows out);
  void ffn_input(kernels::Ops& ops, uint32_t layer, const float* norm, kernels::MutableRows out);
  // A sublayer's output joins the prefix when the next input is read, and stays in place until
  // then.
  void add(kernels::Rows sublayer) { sublayer_ = sublayer; }
  // Rows [first, first + count) as the head reads them, each row once, into out [count, hidden].
  void read_out(kernels::Ops& ops, size_t first, size_t count, const float* norm,
                kernels::MutableRows out);

 private:
  void mix(kernels::Ops& ops, size_t index, size_t first, size_t count, const float* norm,
           kernels::MutableRows out);
  void absorbed();
  void bank(kernels::Ops& ops, size_t next_mix);

  size_t hidden_;
  uint32_t block_;  // layers per bank row; 0: ordinary residuals
  float eps_;
  const ResidualGains* gains_ = nullptr;
  size_t rows_ = 0;
  // [bank rows + 1][max_rows, hidden]: the bank in push order, then the prefix.
  std::vector<RowBuffer> sums_;
  // [bank rows][max_rows, mixes]: what a bank row scores in every mix, computed when it is banked.
  std::vector<RowBuffer> scores_;
  size_t banked_ = 0;
  bool prefix_empty_ = true;                       // just after a push
  kernels::Rows sublayer_;                         // not yet in the prefix; data null: none
  std::vector<kernels::Rows> bank_, bank_scores_;  // arguments of one mix
  std::vector<const float*> next_gains_;
};

}  // namespace runtime
