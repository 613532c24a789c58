// The forward of a K3 / Kimi-Linear network as plain loops over any number type, written from the
// formulas and independent of the kernels: what finite differences differentiate. It leaves the
// tape that the backward reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <vector>

#include "runtime/train/network_parameters.hpp"
#include "runtime/train/tape.hpp"
#include "tests/support/plain_gradient_ops.hpp"

namespace support {

template <class Real>
class PlainNetwork {
 public:
  using Matrix = std::vector<Real>;
  PlainNetwork(const runtime::ModelConfig& config,
               const runtime::NetworkParameters<Real>& parameters, const float* router_bias)
      : config_(config), w_(parameters), bias_(router_bias) {}

  // Runs the rows of `sequences` and returns the logits [rows, vocab]; tape() is that of this run.
  Matrix forward(const std::vector<int32_t>& tokens,
                 const std::vector<kernels::Sequence>& sequences) {
    kept_.clear();
    routes_.clear();
    shares_.clear();
    tape_ = {};
    tokens_ = tokens;
    sequences_ = sequences;
    rows_ = tokens.size();
    const size_t hidden = config_.hidden;
    tape_.rows = rows_;
    tape_.tokens = tokens_;
    tape_.sequences = sequences_;
    Matrix prefix(rows_ * hidden);
    for (size_t row = 0; row < rows_; ++row)
      std::copy_n(w_.embedding.value + static_cast<size_t>(tokens[row]) * hidden, hidden,
                  prefix.data() + row * hidden);
    tape_.embedded = keep(prefix, hidden);
    std::vector<Matrix> bank;
    for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
      runtime::LayerTape<Real> tape;
      const Matrix attention_in = mix(bank, prefix, 2 * size_t{layer});
      tape.attention_in = keep(attention_in, hidden);
      const Matrix attention = w_.layers[layer].kda
                                   ? kda(*w_.layers[layer].kda, attention_in, tape.kda)
                                   : mla(*w_.layers[layer].mla, attention_in, tape.mla);
      tape.attention_out = keep(attention, hidden);
      if (config_.residual_block != 0 && layer % config_.residual_block == 0) {
        bank.push_back(prefix);
        prefix.assign(rows_ * hidden, 0);
      }
      add(prefix, attention);
      const Matrix ffn_in = mix(bank, prefix, 2 * size_t{layer} + 1);
      tape.ffn_in = keep(ffn_in, hidden);
      const Matrix ffn_out = ffn(layer, ffn_in, tape.ffn);
      tape.ffn_out = keep(ffn_out, hidden);
      add(prefix, ffn_out);
      tape_.layers.push_back(tape);
    }
    const Matrix head = mix(bank, prefix, w_.mixes.size() - 1);
    tape_.head = keep(head, hidden);
    return times(head, hidden, w_.head.value, config_.vocab);
  }

  const runtime::Tape<Real>& tape() const { return tape_; }

 private:
  kernels::Grid<const Real> keep(const Matrix& x, size_t width) {
    kept_.push_back(x);
    return {kept_.back().data(), width};
  }
  static void add(Matrix& to, const Matrix& x) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += x[i];
  }

  // x [rows, k] W[n, k]^T, from the first k of `ld` columns.
  Matrix times(const Matrix& x, size_t k, const Real* w, size_t n, size_t first = 0,
               size_t ld = 0) const {
    if (ld == 0) ld = k;
    Matrix y(x.size() / ld * n, 0);
    for (size_t row = 0; row < x.size() / ld; ++row)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < k; ++j) y[row * n + i] += w[i * k + j] * x[row * ld + first + j];
    return y;
  }

  Matrix rms_norm(const Matrix& x, const Real* weight, size_t width, float eps, size_t first = 0,
                  size_t ld = 0) const {
    if (ld == 0) ld = width;
    Matrix y;
    for (size_t row = 0; row < x.size() / ld; ++row) {
      const Real* from = x.data() + row * ld + first;
      const Real inverse = inverse_rms(from, width, Real(eps));
      for (size_t i = 0; i < width; ++i) y.push_back(from[i] * inverse * weight[i]);
    }
    return y;
  }

  Matrix mix(const std::vector<Matrix>& bank, const Matrix& prefix, size_t index) const {
    const size_t hidden = config_.hidden;
    const auto& w = w_.mixes[index];
    Matrix mixed(prefix.size(), 0);
    for (size_t row = 0; row < rows_; ++row) {
      std::vector<const Real*> sources;
      for (const Matrix& one : bank) sources.push_back(one.data() + row * hidden);
      sources.push_back(prefix.data() + row * hidden);
      std::vector<Real> p(sources.size(), 1);
      if (sources.size() > 1) {
        for (size_t s = 0; s < sources.size(); ++s) {
          Real dot = 0;
          for (size_t i = 0; i < hidden; ++i)
            dot += w.score_norm.value[i] * w.score_proj.value[i] * sources[s][i];
          p[s] = std::exp(dot * inverse_rms(sources[s], hidden, Real(config_.norm_eps)));
        }
      }
      const Real total = std::accumulate(p.begin(), p.end(), Real(0));
      for (size_t s = 0; s < sources.size(); ++s)
        for (size_t i = 0; i < hidden; ++i)
          mixed[row * hidden + i] += p[s] / total * sources[s][i];
    }
    return rms_norm(mixed, w.norm.value, hidden, config_.norm_eps);
  }

  Matrix kda(const runtime::KdaParameters<Real>& w, const Matrix& x, runtime::KdaTape<Real>& tape) {
    const runtime::KdaColumns columns(config_.kda);
    const size_t total = columns.total, width = columns.width, d = config_.kda.d;
    const Matrix in = times(x, config_.hidden, w.in.value, total);
    tape.in = keep(in, total);
    tape.decay = keep(times(in, d, w.decay.value, width, columns.decay, total), width);
    tape.gate = tape.in.columns(columns.gate);
    if (!config_.kda.full_rank_gate)
      tape.gate = keep(times(in, d, w.gate.value, width, columns.gate, total), width);
    kernels::KdaGrad<Real> args;
    args.heads = config_.kda.heads;
    args.d = d;
    args.conv_width = config_.kda.conv_width;
    args.has_lower_bound = config_.kda.lower_bound.has_value();
    args.lower_bound = config_.kda.lower_bound.value_or(0.0f);
    args.norm_eps = config_.norm_eps;
    args.qkv = tape.in;
    args.decay = tape.decay;
    args.beta = tape.in.columns(columns.beta);
    args.gate = tape.gate;
    args.conv = w.conv.value;
    args.a_log = w.a_log.value;
    args.dt_bias = w.dt_bias.value;
    args.norm = w.norm.value;
    Matrix out(rows_ * width);
    for (const kernels::Sequence& sequence : sequences_) {
      for (size_t head = 0; head < config_.kda.heads; ++head) {
        const auto outputs = PlainKdaHead<Real>(args, sequence, head).outputs();
        for (size_t t = 0; t < outputs.size(); ++t)
          std::copy(outputs[t].begin(), outputs[t].end(),
                    out.begin() + static_cast<long>((sequence.begin + t) * width + head * d));
      }
    }
    tape.out = keep(out, width);
    return times(out, width, w.out.value, config_.hidden);
  }

  Matrix mla(const runtime::MlaParameters<Real>& w, const Matrix& x, runtime::MlaTape<Real>& tape) {
    const runtime::MlaConfig& mla = config_.mla;
    const runtime::MlaColumns columns(mla);
    const size_t total = columns.total, width = columns.query_width;
    const size_t kv_width = size_t{mla.heads} * (mla.d_nope + mla.d_v);
    const Matrix in = times(x, config_.hidden, w.in.value, total);
    tape.in = keep(in, total);
    Matrix q;
    if (mla.q_lora != 0) {
      const Matrix normed =
          rms_norm(in, w.q_norm.value, mla.q_lora, runtime::kLatentNormEps, 0, total);
      tape.bottleneck = keep(normed, mla.q_lora);
      q = times(normed, mla.q_lora, w.q.value, width);
      tape.q = keep(q, width);
    } else {
      for (size_t row = 0; row < rows_; ++row)
        q.insert(q.end(), in.begin() + static_cast<long>(row * total),
                 in.begin() + static_cast<long>(row * total + width));
    }
    const Matrix latent = rms_norm(in, w.kv_norm.value, mla.kv_lora, runtime::kLatentNormEps,
                                   columns.latent, total);
    const Matrix kv = times(latent, mla.kv_lora, w.kv.value, kv_width);
    Matrix out(rows_ * columns.value_width, 0);
    for (const kernels::Sequence& s : sequences_)
      for (size_t head = 0; head < mla.heads; ++head)
        for (size_t t = 0; t < s.count; ++t) attend(q, kv, in, s, head, t, out);
    tape.out = keep(out, columns.value_width);
    return times(out, columns.value_width, w.out.value, config_.hidden);
  }

  void attend(const Matrix& q, const Matrix& kv, const Matrix& in, const kernels::Sequence& s,
              size_t head, size_t t, Matrix& out) const {
    const runtime::MlaConfig& mla = config_.mla;
    const runtime::MlaColumns columns(mla);
    const size_t each = mla.d_nope + mla.d_v, kv_width = mla.heads * each, row = s.begin + t;
    const Real* query = q.data() + row * columns.query_width + head * (mla.d_nope + mla.d_rope);
    std::vector<Real> p(t + 1, 0);
    for (size_t i = 0; i <= t; ++i) {
      const Real* k = kv.data() + (s.begin + i) * kv_width + head * each;
      const Real* rope = in.data() + (s.begin + i) * columns.total + columns.latent + mla.kv_lora;
      for (size_t j = 0; j < mla.d_nope; ++j) p[i] += query[j] * k[j];
      for (size_t j = 0; j < mla.d_rope; ++j) p[i] += query[mla.d_nope + j] * rope[j];
      p[i] = std::exp(p[i] / std::sqrt(Real(mla.d_nope + mla.d_rope)));
    }
    const Real total = std::accumulate(p.begin(), p.end(), Real(0));
    for (size_t j = 0; j < mla.d_v; ++j) {
      Real sum = 0;
      for (size_t i = 0; i <= t; ++i)
        sum += p[i] / total * kv[(s.begin + i) * kv_width + head * each + mla.d_nope + j];
      if (mla.output_gate)
        sum *= sigmoid(in[row * columns.total + columns.gate + head * mla.d_v + j]);
      out[row * columns.value_width + head * mla.d_v + j] = sum;
    }
  }

  Real activate(Real gate, Real up) const {
    const kernels::ActivationSpec& a = config_.ffn.activation;
    if (a.kind == kernels::Activation::kSwiGLU) return gate * sigmoid(gate) * up;
    const Real beta = a.beta, linear = a.linear_beta;
    return beta * std::tanh(gate / beta) * sigmoid(gate) *
           (linear > 0 ? linear * std::tanh(up / linear) : up);
  }

  Matrix gated(const Matrix& in, size_t total, size_t gate, size_t up, size_t width) const {
    Matrix inner;
    for (size_t row = 0; row < in.size() / total; ++row)
      for (size_t i = 0; i < width; ++i)
        inner.push_back(activate(in[row * total + gate + i], in[row * total + up + i]));
    return inner;
  }

  Matrix ffn(uint32_t layer, const Matrix& x, runtime::FfnTape<Real>& tape) {
    const auto& w = w_.layers[layer].ffn;
    if (config_.is_moe(layer)) return mixture(w, x, tape);
    const size_t width = config_.ffn.dense_width;
    const Matrix in = times(x, config_.hidden, w.in.value, 2 * width);
    tape.in = keep(in, 2 * width);
    const Matrix inner = gated(in, 2 * width, 0, width, width);
    tape.inner = keep(inner, width);
    return times(inner, width, w.down.value, config_.hidden);
  }

  // The experts of one row, ascending, and their weights.
  void route(const Matrix& in, size_t row, std::vector<uint32_t>& expert, Matrix& share) const {
    const runtime::MixtureColumns columns(config_);
    std::vector<Real> score(config_.ffn.experts);
    std::vector<uint32_t> order(score.size());
    for (size_t i = 0; i < score.size(); ++i)
      score[i] = sigmoid(in[row * columns.total + columns.router + i]);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return score[a] + Real(bias_[a]) > score[b] + Real(bias_[b]);
    });
    order.resize(config_.ffn.top_k);
    std::sort(order.begin(), order.end());
    Real total = Real(1e-20);
    for (const uint32_t id : order) total += score[id];
    for (const uint32_t id : order) {
      expert.push_back(id);
      share.push_back((config_.ffn.renormalise ? score[id] / total : score[id]) *
                      Real(config_.ffn.routed_scale));
    }
  }

  Matrix mixture(const runtime::FfnParameters<Real>& w, const Matrix& x,
                 runtime::FfnTape<Real>& tape) {
    const runtime::MixtureColumns columns(config_);
    const size_t total = columns.total, width = columns.routed_width, hidden = config_.hidden;
    const Matrix in = times(x, hidden, w.in.value, total);
    tape.in = keep(in, total);
    auto& expert = routes_.emplace_back();
    auto& share = shares_.emplace_back();
    for (size_t row = 0; row < rows_; ++row) route(in, row, expert, share);
    tape.top_k = config_.ffn.top_k;
    tape.expert = expert;
    tape.share = share;
    const bool latent = config_.ffn.latent != 0;
    Matrix mixed(rows_ * width, 0);
    for (size_t slot = 0; slot < expert.size(); ++slot) {
      const size_t row = slot / config_.ffn.top_k;
      const Real* z = latent ? in.data() + row * total : x.data() + row * hidden;
      const auto& one = w.experts[expert[slot]];
      const size_t inner_width = config_.ffn.expert_width;
      const Matrix h = times(Matrix(z, z + width), width, one.in.value, 2 * inner_width);
      const Matrix y = times(gated(h, 2 * inner_width, 0, inner_width, inner_width), inner_width,
                             one.out.value, width);
      for (size_t i = 0; i < width; ++i) mixed[row * width + i] += share[slot] * y[i];
    }
    tape.mixed = keep(mixed, width);
    Matrix out = mixed;
    if (latent) {
      Matrix normed = mixed;
      if (config_.ffn.latent_norm)
        normed = rms_norm(mixed, w.norm.value, width, config_.norm_eps);
      tape.normed = keep(normed, width);
      out = times(normed, width, w.up.value, hidden);
    }
    if (columns.shared_width != 0) {
      const Matrix inner = gated(in, total, columns.gate, columns.up, columns.shared_width);
      tape.inner = keep(inner, columns.shared_width);
      add(out, times(inner, columns.shared_width, w.down.value, hidden));
    }
    return out;
  }

  const runtime::ModelConfig& config_;
  const runtime::NetworkParameters<Real>& w_;
  const float* bias_;  // [experts], the same in every layer
  size_t rows_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<kernels::Sequence> sequences_;
  std::deque<Matrix> kept_;
  std::deque<std::vector<uint32_t>> routes_;
  std::deque<Matrix> shares_;
  runtime::Tape<Real> tape_;
};

}  // namespace support
