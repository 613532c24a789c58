// Backward of a whole network: from the gradient of the head's input through the readout, the
// layers in reverse and the attention residuals to the embedding.
//
// Bank bookkeeping: the stream's prefix before layer L's attention joins the bank where L is a
// multiple of the block, and the prefix starts anew with the attention's output. So backwards, the
// gradient of that prefix is the bank row's (complete by then: only later layers read it) and not
// that of the prefix after it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/adapter/adapter_parameters.hpp"
#include "runtime/part_timer.hpp"
#include "runtime/train/attention_backward.hpp"
#include "runtime/train/ffn_backward.hpp"

namespace runtime {

template <class Real>
class NetworkBackward {
 public:
  NetworkBackward(const ModelConfig& config, kernels::GradientOps<Real>& ops)
      : config_(config),
        ops_(ops),
        low_rank_(ops),
        prefix_grids_(2 * size_t{config.layer_count()} + 1),
        dbank_grids_(bank_rows(config.layer_count())),
        prefix_(prefix_grids_.size()),
        dbank_(dbank_grids_.size()) {}

  // dhead: [rows, hidden]. Adds to the gradients of `parameters` (but not of the head's matrix), or
  // of `adapter`: then the parameters are frozen, the tape is that of a forward with the adapter,
  // and what lies below its lowest module is left out.
  void run(const Tape<Real>& tape, const NetworkParameters<Real>& parameters,
           kernels::Grid<const Real> dhead, PartTimer* timer = nullptr,
           const AdapterParameters<Real>* adapter = nullptr) {
    VERIFY(adapter == nullptr || !parameters.learns());
    if (timer != nullptr) timer->start();
    sum_prefixes(tape);
    clear_sums(tape.rows);
    const size_t layers = config_.layer_count();
    mix(tape, parameters, 2 * layers, dhead);
    lap(timer, NetworkPart::kResiduals);
    const auto dnormed = dnormed_.take(tape.rows, config_.hidden);
    const size_t lowest = adapter == nullptr ? 0 : adapter->first_layer();
    for (size_t layer = layers; layer-- > lowest;) {
      const LayerAdapterWeights<Real>* own = nullptr;
      if (adapter != nullptr) own = &adapter->layers()[layer];
      low_rank_.enter(own);
      const bool last = own != nullptr && layer == lowest;
      const LayerTape<Real>& at = tape.layers[layer];
      const auto& w = parameters.layers[layer];
      ffn_backward<Real>(ops_, config_, static_cast<uint32_t>(layer), w.ffn, at.ffn,
                         {tape.rows, at.ffn_in, dprefix_, dnormed}, ffn_);
      lap(timer, config_.is_moe(static_cast<uint32_t>(layer)) ? NetworkPart::kMixture
                                                             : NetworkPart::kDense);
      if (last && !own->in_attention()) return;
      mix(tape, parameters, 2 * layer + 1, dnormed);
      lap(timer, NetworkPart::kResiduals);
      AttentionRows<Real> rows{tape.rows, tape.sequences, at.attention_in, dprefix_, dnormed};
      if (last && !own->before_attention()) rows.dx = {};
      if (w.kda.has_value()) {
        kda_backward<Real>(ops_, config_, *w.kda, at.kda, rows, attention_);
      } else {
        mla_backward<Real>(ops_, config_, *w.mla, at.mla, rows, attention_);
      }
      lap(timer, w.kda.has_value() ? NetworkPart::kKda : NetworkPart::kMla);
      if (last) return;
      if (restarts(layer)) std::swap(dprefix_, dbank_[layer / config_.residual_block]);
      mix(tape, parameters, 2 * layer, dnormed);
      lap(timer, NetworkPart::kResiduals);
    }
    embedding_grad(tape, parameters.embedding.grad);
  }

 private:
  bool restarts(size_t layer) const {
    return config_.residual_block != 0 && layer % config_.residual_block == 0;
  }
  // Bank rows that were pushed before layer `layer`.
  size_t bank_rows(size_t layer) const {
    const size_t block = config_.residual_block;
    return block == 0 ? 0 : (layer + block - 1) / block;
  }
  // What the bank holds at a mix: the attention's comes before the push, the ffn's after it.
  size_t banked(size_t mix) const { return bank_rows(mix / 2 + mix % 2); }

  // The prefix at every mix, by the same additions as in the forward.
  void sum_prefixes(const Tape<Real>& tape) {
    prefix_[0] = tape.embedded;
    for (size_t mix = 1; mix < prefix_.size(); ++mix) {
      const LayerTape<Real>& layer = tape.layers[(mix - 1) / 2];
      const bool attention = mix % 2 == 1;
      const auto term = attention ? layer.attention_out : layer.ffn_out;
      if (attention && restarts(mix / 2)) {
        prefix_[mix] = term;
        continue;
      }
      const auto sum = prefix_grids_[mix].take(tape.rows, config_.hidden);
      for (size_t row = 0; row < tape.rows; ++row) {
        const Real *before = prefix_[mix - 1].row(row), *added = term.row(row);
        Real* to = sum.row(row);
        for (size_t i = 0; i < config_.hidden; ++i) to[i] = before[i] + added[i];
      }
      prefix_[mix] = sum;
    }
  }

  void clear_sums(size_t rows) {
    const auto cleared = [&](GrowingGrid<Real>& grid) {
      const auto sum = grid.take(rows, config_.hidden);
      for (size_t row = 0; row < rows; ++row) std::fill_n(sum.row(row), config_.hidden, Real(0));
      return sum;
    };
    dprefix_ = cleared(dprefix_grid_);
    for (size_t i = 0; i < dbank_.size(); ++i) dbank_[i] = cleared(dbank_grids_[i]);
  }

  void mix(const Tape<Real>& tape, const NetworkParameters<Real>& parameters, size_t index,
           kernels::Grid<const Real> dout) {
    const MixParameters<Real>& w = parameters.mixes[index];
    sources_.clear();
    dsources_.clear();
    for (size_t i = 0; i < banked(index); ++i) {
      sources_.push_back(prefix_[2 * i * config_.residual_block]);
      dsources_.push_back(dbank_[i]);
    }
    sources_.push_back(prefix_[index]);
    dsources_.push_back(dprefix_);
    kernels::ResidualGrad<Real> args;
    args.rows = tape.rows;
    args.width = config_.hidden;
    args.eps = config_.norm_eps;
    args.sources = sources_;
    args.dsources = dsources_;
    args.norm = w.norm.value;
    args.dnorm = w.norm.grad;
    if (sources_.size() > 1) {
      args.score_norm = w.score_norm.value;
      args.score_proj = w.score_proj.value;
      args.dscore_norm = w.score_norm.grad;
      args.dscore_proj = w.score_proj.grad;
    }
    args.dout = dout;
    ops_.residual_grad(args);
  }

  void embedding_grad(const Tape<Real>& tape, Real* dembedding) {
    if (dembedding == nullptr) return;
    for (size_t row = 0; row < tape.rows; ++row) {
      Real* to = dembedding + static_cast<size_t>(tape.tokens[row]) * config_.hidden;
      const Real* from = dprefix_.row(row);
      for (size_t i = 0; i < config_.hidden; ++i) to[i] += from[i];
    }
  }

  const ModelConfig& config_;
  kernels::GradientOps<Real>& ops_;
  LowRankGrad<Real> low_rank_;
  std::vector<GrowingGrid<Real>> prefix_grids_, dbank_grids_;
  GrowingGrid<Real> dprefix_grid_, dnormed_;
  std::vector<kernels::Grid<const Real>> prefix_;  // [mixes]
  std::vector<kernels::Grid<Real>> dbank_;
  kernels::Grid<Real> dprefix_;
  std::vector<kernels::Grid<const Real>> sources_;  // of one mix
  std::vector<kernels::Grid<Real>> dsources_;
  AttentionScratch<Real> attention_{low_rank_};
  FfnBackwardScratch<Real> ffn_{low_rank_};
};

// Rows [first, first + count) of the head: `logits` [count, vocab] become their gradient, the
// head's matrix and dhead receive theirs. Returns the loss.
template <class Real>
double head_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config,
                     const kernels::CrossEntropyGrad<Real>& loss, kernels::Grid<const Real> head,
                     const Weight<Real>& w, kernels::Grid<Real> dhead) {
  const double value = ops.cross_entropy(loss);
  linear_grad<Real>(ops, {loss.rows, config.vocab, config.hidden}, loss.logits, head, w, dhead);
  return value;
}

}  // namespace runtime
