// A network that decodes one token after the other, in double: recurrent states, convolution tails
// and latent rows are carried as the server carries them, and every formula is the rule of
// kernels/*.hpp that the server runs in float.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/residual.hpp"
#include "tests/support/decode_layers.hpp"

namespace support {

class DecodeNetwork {
 public:
  // `parameters` must outlive the network; bias: [experts], the same in every layer.
  DecodeNetwork(const runtime::ModelConfig& config,
                const runtime::NetworkParameters<double>& parameters, const float* bias)
      : config_(config), w_(parameters), bias_(bias), attention_(w_.layers.size()) {
    for (size_t i = 0; i < attention_.size(); ++i) {
      if (w_.layers[i].kda) attention_[i].kda.emplace(config, *w_.layers[i].kda);
      if (w_.layers[i].mla) attention_[i].mla.emplace(config.mla, *w_.layers[i].mla);
    }
  }

  // Logits [vocab] after the sequence's next token.
  DoubleRow step(int32_t token) {
    const size_t hidden = config_.hidden;
    DoubleRow prefix = row_of(w_.embedding.value + static_cast<size_t>(token) * hidden, hidden);
    std::vector<DoubleRow> bank;  // lives for one token
    attention_out_.clear();
    ffn_out_.clear();
    for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
      const DoubleRow x = mix(bank, prefix, 2 * size_t{layer});
      if (config_.residual_block != 0 && layer % config_.residual_block == 0) {
        bank.push_back(prefix);
        prefix.assign(hidden, Double(0));
      }
      auto& attention = attention_[layer];
      attention_out_.push_back(attention.kda ? attention.kda->step(x, hidden)
                                             : attention.mla->step(x, hidden));
      add(attention_out_.back(), prefix);
      ffn_out_.push_back(ffn(layer, mix(bank, prefix, 2 * size_t{layer} + 1)));
      add(ffn_out_.back(), prefix);
    }
    return product(w_.head.value, config_.vocab, mix(bank, prefix, w_.mixes.size() - 1));
  }

  // What the layers' halves gave the residual stream for the last token, [layers][hidden].
  const std::vector<DoubleRow>& attention_out() const { return attention_out_; }
  const std::vector<DoubleRow>& ffn_out() const { return ffn_out_; }

 private:
  struct Attention {
    std::optional<DecodeKda> kda;  // one of the two
    std::optional<DecodeMla> mla;
  };

  static void add(const DoubleRow& x, DoubleRow& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = to[i] + x[i];
  }

  DoubleRow mix(std::vector<DoubleRow> sources, const DoubleRow& prefix, size_t index) const {
    const auto& w = w_.mixes[index];
    const size_t hidden = config_.hidden;
    if (sources.empty()) return rms_norm(prefix, w.norm.value, config_.norm_eps);
    sources.push_back(prefix);
    DoubleRow gain, weight;
    for (size_t i = 0; i < hidden; ++i)
      gain.emplace_back(w.score_norm.value[i] * w.score_proj.value[i]);
    for (const DoubleRow& source : sources) {
      const Double inverse = kernels::inverse_rms(dot(source.data(), source.data(), hidden),
                                                  static_cast<float>(hidden), config_.norm_eps);
      weight.push_back(kernels::residual_score(dot(source.data(), gain.data(), hidden), inverse));
    }
    const Double most = *std::max_element(weight.begin(), weight.end());
    Double total(0);
    for (Double& one : weight) total = total + (one = kernels::math::exp(one - most));
    DoubleRow mixed(hidden, Double(0));
    for (size_t s = 0; s < sources.size(); ++s)
      for (size_t i = 0; i < hidden; ++i)
        mixed[i] = kernels::residual_sum(weight[s] / total, sources[s][i], mixed[i]);
    return rms_norm(std::move(mixed), w.norm.value, config_.norm_eps);
  }

  // act(gate, up) of `width` columns each.
  DoubleRow gated(const DoubleRow& in, size_t gate, size_t up, size_t width) const {
    const kernels::ActivationSpec& act = config_.ffn.activation;
    DoubleRow out;
    for (size_t i = 0; i < width; ++i) {
      const Double g = in[gate + i], u = in[up + i];
      out.push_back(act.kind == kernels::Activation::kSwiGLU
                        ? kernels::swiglu(g, u)
                        : kernels::situ_glu(g, u, act.beta, act.linear_beta));
    }
    return out;
  }

  DoubleRow ffn(uint32_t layer, const DoubleRow& x) const {
    const auto& w = w_.layers[layer].ffn;
    if (config_.is_moe(layer)) return mixture(w, x);
    const size_t width = config_.ffn.dense_width;
    const DoubleRow in = product(w.in.value, 2 * width, x);
    return product(w.down.value, config_.hidden, gated(in, 0, width, width));
  }

  DoubleRow mixture(const runtime::FfnParameters<double>& w, const DoubleRow& x) const {
    const runtime::MixtureColumns columns(config_);
    const runtime::FfnConfig& ffn = config_.ffn;
    const DoubleRow in = product(w.in.value, columns.total, x);
    DoubleRow score;
    for (size_t i = 0; i < ffn.experts; ++i)
      score.push_back(kernels::math::sigmoid(in[columns.router + i]));
    std::vector<uint32_t> order(ffn.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return Double(static_cast<double>(bias_[b])) + score[b] <
             Double(static_cast<double>(bias_[a])) + score[a];
    });
    order.resize(ffn.top_k);
    std::sort(order.begin(), order.end());
    Double total(1e-20);
    for (const uint32_t id : order) total = total + score[id];
    const DoubleRow z = ffn.latent != 0 ? slice(in, 0, ffn.latent) : x;
    DoubleRow mixed(columns.routed_width, Double(0));
    for (const uint32_t id : order) {
      const size_t width = ffn.expert_width;
      const DoubleRow h = product(w.experts[id].in.value, 2 * width, z);
      const DoubleRow y =
          product(w.experts[id].out.value, mixed.size(), gated(h, 0, width, width));
      const Double share = (ffn.renormalise ? score[id] / total : score[id]) *
                           Double(static_cast<double>(ffn.routed_scale));
      for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = multiply_add(share, y[i], mixed[i]);
    }
    DoubleRow out = std::move(mixed);
    if (ffn.latent_norm) out = rms_norm(std::move(out), w.norm.value, config_.norm_eps);
    if (ffn.latent != 0) out = product(w.up.value, config_.hidden, out);
    if (columns.shared_width != 0) {
      add(product(w.down.value, config_.hidden,
                  gated(in, columns.gate, columns.up, columns.shared_width)),
          out);
    }
    return out;
  }

  const runtime::ModelConfig& config_;
  const runtime::NetworkParameters<double>& w_;
  const float* bias_;
  std::vector<Attention> attention_;
  std::vector<DoubleRow> attention_out_, ffn_out_;
};

}  // namespace support
