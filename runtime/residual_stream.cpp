#include "runtime/residual_stream.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

ResidualGains::ResidualGains(const ModelConfig& config)
    : hidden_(config.hidden),
      layers_(config.layer_count()),
      mixes_(config.residual_block != 0),
      gains_(2 * size_t{layers_} + 1) {}

ResidualGains::Gain ResidualGains::load_gain(PackedWeights& weights, const std::string& norm,
                                             const std::string& proj) const {
  Gain gain = weights.vector(norm + ".weight", hidden_);
  const auto projection = weights.floats(proj + ".weight", {1, hidden_});
  for (size_t i = 0; i < hidden_; ++i) gain[i] *= projection[i];
  return gain;
}

void ResidualGains::load(PackedWeights& weights) {
  if (!mixes_) return;
  for (uint32_t layer = 0; layer < layers_; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".";
    // Layer 0 reads the bare embedding: its bank is empty, so it has nothing to mix.
    if (layer != 0) {
      gains_[2 * size_t{layer}] =
          load_gain(weights, name + "self_attention_res_norm", name + "self_attention_res_proj");
    }
    gains_[2 * size_t{layer} + 1] =
        load_gain(weights, name + "mlp_res_norm", name + "mlp_res_proj");
  }
  gains_.back() = load_gain(weights, "model.output_attn_res_norm", "model.output_attn_res_proj");
}

ResidualStream::ResidualStream(const ModelConfig& config, size_t max_rows)
    : hidden_(config.hidden), block_(config.residual_block), eps_(config.norm_eps) {
  const size_t layers = config.layer_count();
  const size_t bank_rows = block_ == 0 ? 0 : (layers + block_ - 1) / block_;
  for (size_t i = 0; i <= bank_rows; ++i) sums_.emplace_back(max_rows, hidden_);
  for (size_t i = 0; i < bank_rows; ++i) scores_.emplace_back(max_rows, 2 * layers + 1);
}

kernels::MutableRows ResidualStream::begin(const ResidualGains& gains, size_t rows) {
  gains_ = &gains;
  rows_ = rows;
  banked_ = 0;
  prefix_empty_ = false;
  sublayer_ = {};
  return sums_[0].rows();
}

void ResidualStream::attention_input(kernels::Ops& ops, uint32_t layer, const float* norm,
                                     kernels::MutableRows out) {
  mix(ops, 2 * size_t{layer}, 0, rows_, norm, out);
  absorbed();
  if (block_ != 0 && layer % block_ == 0) bank(ops, 2 * size_t{layer} + 1);
}

void ResidualStream::ffn_input(kernels::Ops& ops, uint32_t layer, const float* norm,
                               kernels::MutableRows out) {
  mix(ops, 2 * size_t{layer} + 1, 0, rows_, norm, out);
  absorbed();
}

// The prefix's buffer stays where it is and becomes the newest bank row, scored for every mix from
// `next_mix` on.
void ResidualStream::bank(kernels::Ops& ops, size_t next_mix) {
  next_gains_.clear();
  for (size_t i = next_mix; i < gains_->count(); ++i) next_gains_.push_back(gains_->gain(i));
  ops.residual_scores(sums_[banked_].rows(), next_gains_, eps_, scores_[banked_].columns(next_mix),
                      rows_, hidden_);
  ++banked_;
  VERIFY(banked_ < sums_.size());
  prefix_empty_ = true;
}

void ResidualStream::read_out(kernels::Ops& ops, size_t first, size_t count, const float* norm,
                              kernels::MutableRows out) {
  mix(ops, gains_->count() - 1, first, count, norm, out);
}

// The prefix of every row holds the sublayer's output now.
void ResidualStream::absorbed() {
  if (sublayer_.data != nullptr) prefix_empty_ = false;
  sublayer_ = {};
}

void ResidualStream::mix(kernels::Ops& ops, size_t index, size_t first, size_t count,
                         const float* norm, kernels::MutableRows out) {
  const auto from_first = [first](auto rows) {
    if (rows.data != nullptr) rows.data += first * rows.ld;
    return rows;
  };
  bank_.clear();
  bank_scores_.clear();
  for (size_t i = 0; i < banked_; ++i) {
    bank_.push_back(from_first(sums_[i].rows()));
    bank_scores_.push_back(from_first(scores_[i].columns(index)));
  }
  kernels::ResidualArgs args;
  args.width = hidden_;
  args.prefix = from_first(sums_[banked_].rows());
  args.sublayer = from_first(sublayer_);
  args.restart = prefix_empty_;
  args.bank = bank_;
  args.bank_scores = bank_scores_;
  args.gain = gains_->gain(index);
  args.norm = norm;
  args.eps = eps_;
  args.out = out;
  ops.residual_mix(args, count);
}

}  // namespace runtime
