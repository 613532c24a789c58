// One token of a KDA or MLA layer in double, with what the layer carries from token to token. The
// formulas are the rules of kernels/*.hpp.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/kda.hpp"
#include "runtime/layer_columns.hpp"
#include "runtime/mla_layer.hpp"
#include "runtime/train/network_parameters.hpp"
#include "tests/support/double_number.hpp"

namespace support {

using DoubleRow = std::vector<Double>;

inline DoubleRow row_of(const double* from, size_t count) {
  DoubleRow out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(from[i]);
  return out;
}

// W[n, x.size()] x
inline DoubleRow product(const double* w, size_t n, const DoubleRow& x) {
  DoubleRow y(n, Double(0));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < x.size(); ++j)
      y[i] = multiply_add(Double(w[i * x.size() + j]), x[j], y[i]);
  return y;
}

inline Double dot(const Double* a, const Double* b, size_t count) {
  Double sum(0);
  for (size_t i = 0; i < count; ++i) sum = multiply_add(a[i], b[i], sum);
  return sum;
}

inline DoubleRow rms_norm(DoubleRow x, const double* weight, float eps) {
  const Double inverse =
      kernels::inverse_rms(dot(x.data(), x.data(), x.size()), static_cast<float>(x.size()), eps);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = kernels::rms_scale(x[i], inverse, Double(weight[i]));
  return x;
}

inline DoubleRow slice(const DoubleRow& x, size_t first, size_t count) {
  const auto begin = x.begin() + static_cast<long>(first);
  return {begin, begin + static_cast<long>(count)};
}

// Carries the states [heads][keys][values] and the raw projections of the last taps.
class DecodeKda {
 public:
  DecodeKda(const runtime::ModelConfig& config, const runtime::KdaParameters<double>& w)
      : config_(config.kda),
        w_(w),
        norm_eps_(config.norm_eps),
        state_(size_t{config_.heads} * config_.d * config_.d, Double(0)),
        window_(config_.conv_width - 1,
                DoubleRow(3 * runtime::KdaColumns(config_).width, Double(0))) {}

  DoubleRow step(const DoubleRow& x, size_t hidden) {
    const runtime::KdaColumns columns(config_);
    const DoubleRow in = product(w_.in.value, columns.total, x);
    window_.push_back(slice(in, 0, 3 * columns.width));
    const DoubleRow f = product(w_.decay.value, columns.width, slice(in, columns.decay, config_.d));
    const DoubleRow gate =
        config_.full_rank_gate
            ? slice(in, columns.gate, columns.width)
            : product(w_.gate.value, columns.width, slice(in, columns.gate, config_.d));
    DoubleRow out;
    for (size_t head = 0; head < config_.heads; ++head)
      add_head(head, f, in[columns.beta + head], gate, out);
    window_.erase(window_.begin());
    return product(w_.out.value, hidden, out);
  }

 private:
  // Convolution and SiLU of a head's q, k or v.
  DoubleRow convolved(size_t part, size_t head) const {
    DoubleRow out;
    for (size_t i = 0; i < config_.d; ++i) {
      const size_t column = (part * config_.heads + head) * config_.d + i;
      Double sum(0);
      for (size_t tap = 0; tap < window_.size(); ++tap)
        sum = multiply_add(Double(w_.conv.value[column * window_.size() + tap]),
                           window_[tap][column], sum);
      out.push_back(kernels::math::silu(sum));
    }
    return out;
  }

  static DoubleRow normalised(DoubleRow x, Double scale) {
    const Double inverse = kernels::inverse_l2(dot(x.data(), x.data(), x.size()), 1e-6f);
    for (Double& value : x) value = value * inverse * scale;
    return x;
  }

  void add_head(size_t head, const DoubleRow& f, Double beta, const DoubleRow& gate,
                DoubleRow& out) {
    const size_t d = config_.d;
    const Double width(static_cast<double>(d));
    const Double rate = kernels::math::exp(Double(w_.a_log.value[head]));
    const DoubleRow q = normalised(convolved(0, head), kernels::math::inverse_sqrt(width));
    const DoubleRow k = normalised(convolved(1, head), Double(1)), v = convolved(2, head);
    DoubleRow decay;
    for (size_t i = 0; i < d; ++i) {
      decay.push_back(kernels::kda_decay(f[head * d + i], Double(w_.dt_bias.value[head * d + i]),
                                         rate, config_.lower_bound.has_value(),
                                         config_.lower_bound.value_or(0.0f)));
    }
    DoubleRow o;
    for (size_t column = 0; column < d; ++column) {
      Double* state = state_.data() + head * d * d + column;
      Double predicted(0), read(0);
      for (size_t i = 0; i < d; ++i)
        state[i * d] = kernels::kda_decay_predict(state[i * d], decay[i], k[i], predicted);
      const Double update =
          kernels::kda_update(v[column], predicted, kernels::math::sigmoid(beta));
      for (size_t i = 0; i < d; ++i)
        state[i * d] = kernels::kda_write_read(state[i * d], update, k[i], q[i], read);
      o.push_back(read);
    }
    const Double inverse =
        kernels::inverse_rms(dot(o.data(), o.data(), d), static_cast<float>(d), norm_eps_);
    for (size_t i = 0; i < d; ++i)
      out.push_back(
          kernels::kda_output(o[i], inverse, Double(w_.norm.value[i]), gate[head * d + i]));
  }

  const runtime::KdaConfig& config_;
  const runtime::KdaParameters<double>& w_;
  float norm_eps_;
  DoubleRow state_;
  std::vector<DoubleRow> window_;  // [taps - 1 between tokens][3 D], oldest first
};

// Carries a row [normalised latent | shared key] of every token so far.
class DecodeMla {
 public:
  DecodeMla(const runtime::MlaConfig& config, const runtime::MlaParameters<double>& w)
      : config_(config), w_(w) {}

  DoubleRow step(const DoubleRow& x, size_t hidden) {
    const runtime::MlaColumns columns(config_);
    const DoubleRow in = product(w_.in.value, columns.total, x);
    DoubleRow q = slice(in, columns.query, columns.gate);
    if (config_.q_lora != 0)
      q = product(w_.q.value, columns.query_width,
                  rms_norm(std::move(q), w_.q_norm.value, runtime::kLatentNormEps));
    DoubleRow row = rms_norm(slice(in, columns.latent, config_.kv_lora), w_.kv_norm.value,
                             runtime::kLatentNormEps);
    const DoubleRow key = slice(in, columns.latent + config_.kv_lora, config_.d_rope);
    row.insert(row.end(), key.begin(), key.end());
    rows_.push_back(std::move(row));
    DoubleRow out;
    for (size_t head = 0; head < config_.heads; ++head) {
      const DoubleRow values = attend(head, slice(q, head * d_q(), d_q()));
      for (size_t i = 0; i < values.size(); ++i) {
        out.push_back(config_.output_gate
                          ? values[i] * kernels::math::sigmoid(
                                            in[columns.gate + head * config_.d_v + i])
                          : values[i]);
      }
    }
    return product(w_.out.value, hidden, out);
  }

 private:
  // Of some positions: the largest score, the sum of weights, the weighted sum of latents.
  struct Partial {
    Double max{-std::numeric_limits<double>::infinity()}, weight{0};
    DoubleRow latent;
  };

  size_t d_q() const { return size_t{config_.d_nope} + config_.d_rope; }

  static void merge(const Partial& block, Partial& into) {
    const auto factors = kernels::merge_factors(into.max, block.max);
    into.max = factors.max;
    const auto merged = [&](Double old_value, Double value) {
      return kernels::merge(old_value, value, factors.old_factor, factors.block_factor);
    };
    into.weight = merged(into.weight, block.weight);
    for (size_t i = 0; i < into.latent.size(); ++i)
      into.latent[i] = merged(into.latent[i], block.latent[i]);
  }

  // query: against the rows, absorbed [kv_lora + d_rope].
  Partial block(const DoubleRow& query, size_t first, size_t end) const {
    Partial out{.latent = DoubleRow(config_.kv_lora, Double(0))};
    DoubleRow score;
    for (size_t i = first; i < end; ++i) {
      score.push_back(dot(query.data(), rows_[i].data(), query.size()) *
                      kernels::math::inverse_sqrt(Double(static_cast<double>(d_q()))));
      out.max = select(out.max < score.back(), score.back(), out.max);
    }
    for (size_t i = first; i < end; ++i) {
      const Double weight = kernels::math::exp(score[i - first] - out.max);
      out.weight = out.weight + weight;
      for (size_t j = 0; j < out.latent.size(); ++j)
        out.latent[j] = multiply_add(weight, rows_[i][j], out.latent[j]);
    }
    return out;
  }

  DoubleRow attend(size_t head, const DoubleRow& q) const {
    const size_t latent = config_.kv_lora;
    const double* keys = w_.kv.value + head * (config_.d_nope + config_.d_v) * latent;
    DoubleRow query(latent, Double(0));  // W_kc^T q, then the part for the shared key
    for (size_t i = 0; i < config_.d_nope; ++i)
      for (size_t j = 0; j < latent; ++j)
        query[j] = multiply_add(Double(keys[i * latent + j]), q[i], query[j]);
    query.insert(query.end(), q.begin() + config_.d_nope, q.end());
    const auto empty = [&] { return Partial{.latent = DoubleRow(latent, Double(0))}; };
    Partial all = empty(), span = empty();
    for (size_t first = 0; first < rows_.size(); first += kernels::kAttentionBlock) {
      const size_t end = std::min<size_t>(first + kernels::kAttentionBlock, rows_.size());
      merge(block(query, first, end), span);
      if (end % kernels::kAttentionSpan != 0 && end != rows_.size()) continue;
      merge(span, all);
      span = empty();
    }
    for (Double& value : all.latent) value = value / all.weight;
    return product(keys + config_.d_nope * latent, config_.d_v, all.latent);
  }

  const runtime::MlaConfig& config_;
  const runtime::MlaParameters<double>& w_;
  std::vector<DoubleRow> rows_;
};

}  // namespace support
