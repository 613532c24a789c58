#include "runtime/residual_stream.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

MixGain load_mix_gain(PackedWeights& weights, const std::string& norm, const std::string& proj,
                      size_t hidden) {
  MixGain gain = weights.vector(norm + ".weight", hidden);
  const auto projection = weights.floats(proj + ".weight", {1, hidden});
  for (size_t i = 0; i < hidden; ++i) gain[i] *= projection[i];
  return gain;
}

ResidualStream::ResidualStream(const ModelConfig& config, size_t max_rows)
    : hidden_(config.hidden), block_(config.residual_block), eps_(config.norm_eps) {
  const size_t bank_rows = block_ == 0 ? 0 : (config.layers.size() + block_ - 1) / block_;
  for (size_t i = 0; i <= bank_rows; ++i) sums_.emplace_back(max_rows, hidden_);
  bank_.reserve(bank_rows);
  if (block_ != 0) mixed_ = RowBuffer(max_rows, hidden_);
}

kernels::MutableRows ResidualStream::begin(size_t rows) {
  rows_ = rows;
  banked_ = 0;
  prefix_empty_ = false;
  return sums_[0].rows();
}

kernels::Rows ResidualStream::mix(kernels::Ops& ops, const MixGain& gain) {
  read_out(ops, gain, 0, rows_, mixed_.rows());
  return mixed_.rows();
}

kernels::Rows ResidualStream::attention_input(kernels::Ops& ops, uint32_t layer,
                                              const MixGain& gain) {
  const kernels::Rows prefix = sums_[banked_].rows();
  if (block_ == 0) return prefix;
  const kernels::Rows input = banked_ == 0 ? prefix : mix(ops, gain);
  if (layer % block_ == 0) {
    ++banked_;  // the prefix's buffer stays where it is and becomes the newest bank row
    VERIFY(banked_ < sums_.size());
    prefix_empty_ = true;
  }
  return input;
}

kernels::Rows ResidualStream::ffn_input(kernels::Ops& ops, const MixGain& gain) {
  return block_ == 0 ? sums_[banked_].rows() : mix(ops, gain);
}

void ResidualStream::add(kernels::Ops& ops, kernels::Rows sublayer) {
  if (prefix_empty_) {
    ops.copy(sublayer, sums_[banked_].rows(), rows_, hidden_);
    prefix_empty_ = false;
  } else {
    ops.add(sublayer, sums_[banked_].rows(), rows_, hidden_);
  }
}

void ResidualStream::read_out(kernels::Ops& ops, const MixGain& gain, size_t first, size_t count,
                              kernels::MutableRows out) {
  const auto from_first = [first](const RowBuffer& buffer) {
    const kernels::Rows rows = buffer.rows();
    return kernels::Rows{rows.data + first * rows.ld, rows.ld};
  };
  const kernels::Rows prefix = from_first(sums_[banked_]);
  if (block_ == 0) {
    ops.copy(prefix, out, count, hidden_);
    return;
  }
  bank_.clear();
  for (size_t i = 0; i < banked_; ++i) bank_.push_back(from_first(sums_[i]));
  ops.residual_mix(bank_, prefix, gain.data(), eps_, out, count, hidden_);
}

}  // namespace runtime
