// GradientOps as plain loops, see plain_gradients.hpp.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/plain_gradients.hpp"

namespace support {

template <class Real>
class PlainGradientOps final : public kernels::GradientOps<Real> {
 public:
  void product(const kernels::Product<Real>& p) override {
    for (size_t i = 0; i < p.m; ++i) {
      for (size_t j = 0; j < p.n; ++j) {
        Real sum = p.add ? p.c.row(i)[j] : Real(0);
        for (size_t l = 0; l < p.k; ++l) {
          sum += (p.a_transposed ? p.a.row(l)[i] : p.a.row(i)[l]) *
                 (p.b_transposed ? p.b.row(j)[l] : p.b.row(l)[j]);
        }
        p.c.row(i)[j] = sum;
      }
    }
  }

  void rms_norm(kernels::Grid<const Real> x, const Real* weight, float eps, kernels::Grid<Real> y,
                size_t rows, size_t width) override {
    for (size_t r = 0; r < rows; ++r) {
      const Real inverse = inverse_rms(x.row(r), width, Real(eps));
      for (size_t i = 0; i < width; ++i) y.row(r)[i] = x.row(r)[i] * inverse * weight[i];
    }
  }

  void rms_norm_grad(const kernels::RmsNormGrad<Real>& a) override {
    for (size_t r = 0; r < a.rows; ++r) {
      rms_norm_grad_row(a.x.row(r), a.weight, Real(a.eps), a.dy.row(r), a.width, a.dx.row(r),
                        a.add, a.dweight);
    }
  }

  void glu_grad(const kernels::GluGrad<Real>& a) override {
    for (size_t r = 0; r < a.rows; ++r) {
      const Real share = a.share == nullptr ? Real(1) : a.share[r];
      Real dshare = 0;
      for (size_t i = 0; i < a.width; ++i) {
        const Real g = a.gate.row(r)[i], u = a.up.row(r)[i], dout = a.dout.row(r)[i];
        const Activated h = activate(a.activation, g, u);
        dshare += dout * h.value;
        if (a.inner.data != nullptr) a.inner.row(r)[i] = share * h.value;
        a.dgate.row(r)[i] = share * dout * h.dgate;
        a.dup.row(r)[i] = share * dout * h.dup;
      }
      if (a.share != nullptr) a.dshare[r] = dshare;
    }
  }

  void attention_grad(const kernels::AttentionGrad<Real>& a) override {
    clear(a.dkv, a.sequences, a.heads * (a.d_nope + a.d_v));
    clear(a.dk_rope, a.sequences, a.d_rope);
    clear(a.dq, a.sequences, a.heads * (a.d_nope + a.d_rope));
    for (const kernels::Sequence& s : a.sequences)
      for (size_t head = 0; head < a.heads; ++head)
        for (size_t t = 0; t < s.count; ++t) attention_row(a, s, head, t);
  }

  void kda_grad(const kernels::KdaGrad<Real>& a) override {
    for (const kernels::Sequence& sequence : a.sequences)
      for (size_t head = 0; head < a.heads; ++head) PlainKdaHead<Real>(a, sequence, head).run();
  }

  void residual_grad(const kernels::ResidualGrad<Real>& a) override {
    for (size_t r = 0; r < a.rows; ++r) residual_row(a, r);
  }

  void route_grad(const kernels::RouteGrad<Real>& a) override {
    for (size_t r = 0; r < a.rows; ++r) {
      const uint32_t* expert = a.expert.data() + r * a.top_k;
      const Real* dweight = a.dweight + r * a.top_k;
      Real total = Real(1e-20), weighted = 0;
      for (size_t i = 0; i < a.top_k; ++i) total += sigmoid(a.logits.row(r)[expert[i]]);
      for (size_t i = 0; i < a.top_k; ++i)
        weighted += dweight[i] * sigmoid(a.logits.row(r)[expert[i]]) / total;
      for (size_t i = 0; i < a.experts; ++i) a.dlogits.row(r)[i] = 0;
      for (size_t i = 0; i < a.top_k; ++i) {
        const Real s = sigmoid(a.logits.row(r)[expert[i]]);
        const Real ds = a.renormalise ? (dweight[i] - weighted) / total : dweight[i];
        a.dlogits.row(r)[expert[i]] = Real(a.scale) * ds * s * (1 - s);
      }
    }
  }

  double cross_entropy(const kernels::CrossEntropyGrad<Real>& a) override {
    double loss = 0;
    for (size_t r = 0; r < a.rows; ++r) {
      Real* z = a.logits.row(r);
      const Real most = *std::max_element(z, z + a.width);
      const auto target = static_cast<size_t>(a.target[r]);
      Real sum = 0;
      for (size_t i = 0; i < a.width; ++i) sum += std::exp(z[i] - most);
      const Real one = std::log(sum) + most - z[target];
      if (a.loss != nullptr) a.loss[r] = static_cast<float>(one);
      loss += static_cast<double>(a.weight[r]) * static_cast<double>(one);
      for (size_t i = 0; i < a.width; ++i)
        z[i] = Real(a.weight[r]) * (std::exp(z[i] - most) / sum - Real(i == target ? 1 : 0));
    }
    return loss;
  }

 private:
  struct Activated {
    Real value, dgate, dup;
  };
  static Activated activate(const kernels::ActivationSpec& spec, Real g, Real u) {
    const Real s = sigmoid(g);
    if (spec.kind == kernels::Activation::kSwiGLU)
      return {g * s * u, u * s * (1 + g * (1 - s)), g * s};
    const Real beta = Real(spec.beta), linear = Real(spec.linear_beta);
    const Real a = beta * std::tanh(g / beta);
    const Real l = linear > 0 ? linear * std::tanh(u / linear) : u;
    const Real slope = linear > 0 ? 1 - (l / linear) * (l / linear) : Real(1);
    return {a * s * l, l * ((1 - (a / beta) * (a / beta)) * s + a * s * (1 - s)), a * s * slope};
  }

  static void clear(kernels::Grid<Real> x, std::span<const kernels::Sequence> sequences,
                    size_t width) {
    for (const kernels::Sequence& s : sequences)
      for (size_t t = 0; t < s.count; ++t) std::fill_n(x.row(s.begin + t), width, Real(0));
  }

  // The query at token t of one head.
  static void attention_row(const kernels::AttentionGrad<Real>& a, const kernels::Sequence& s,
                            size_t head, size_t t) {
    const size_t query = head * (a.d_nope + a.d_rope), key = head * (a.d_nope + a.d_v);
    const size_t row = s.begin + t;
    const Real scale = 1 / std::sqrt(Real(a.d_nope + a.d_rope));
    const Real* q = a.q.row(row) + query;
    std::vector<Real> p(t + 1), out(a.d_v, 0), dout(a.d_v);
    Real most = -std::numeric_limits<Real>::infinity(), sum = 0;
    for (size_t i = 0; i <= t; ++i) {
      const Real *k = a.kv.row(s.begin + i) + key, *rope = a.k_rope.row(s.begin + i);
      for (size_t j = 0; j < a.d_nope; ++j) p[i] += q[j] * k[j];
      for (size_t j = 0; j < a.d_rope; ++j) p[i] += q[a.d_nope + j] * rope[j];
      p[i] *= scale;
      most = std::max(most, p[i]);
    }
    for (Real& x : p) sum += x = std::exp(x - most);
    for (size_t i = 0; i <= t; ++i) {
      p[i] /= sum;
      for (size_t j = 0; j < a.d_v; ++j)
        out[j] += p[i] * a.kv.row(s.begin + i)[key + a.d_nope + j];
    }
    Real delta = 0;
    for (size_t j = 0; j < a.d_v; ++j) {
      dout[j] = a.dout.row(row)[head * a.d_v + j];
      if (a.gate.data != nullptr) {
        const Real z = sigmoid(a.gate.row(row)[head * a.d_v + j]);
        a.dgate.row(row)[head * a.d_v + j] = dout[j] * out[j] * z * (1 - z);
        dout[j] *= z;
      }
      delta += dout[j] * out[j];
    }
    Real* dq = a.dq.row(row) + query;
    for (size_t i = 0; i <= t; ++i) {
      const Real *k = a.kv.row(s.begin + i) + key, *rope = a.k_rope.row(s.begin + i);
      Real *dk = a.dkv.row(s.begin + i) + key, *drope = a.dk_rope.row(s.begin + i);
      Real dp = 0;
      for (size_t j = 0; j < a.d_v; ++j) {
        dp += dout[j] * k[a.d_nope + j];
        dk[a.d_nope + j] += p[i] * dout[j];
      }
      const Real dz = p[i] * (dp - delta) * scale;
      for (size_t j = 0; j < a.d_nope; ++j) {
        dq[j] += dz * k[j];
        dk[j] += dz * q[j];
      }
      for (size_t j = 0; j < a.d_rope; ++j) {
        dq[a.d_nope + j] += dz * rope[j];
        drope[j] += dz * q[a.d_nope + j];
      }
    }
  }

  static void residual_row(const kernels::ResidualGrad<Real>& a, size_t r) {
    const size_t n = a.sources.size(), width = a.width;
    std::vector<Real> inverse(n), score(n, 0), p(n, 1), mix(width, 0), dmix(width);
    for (size_t s = 0; s < n; ++s) {
      const Real* x = a.sources[s].row(r);
      inverse[s] = inverse_rms(x, width, Real(a.eps));
      if (n == 1) break;
      for (size_t i = 0; i < width; ++i) score[s] += a.score_norm[i] * a.score_proj[i] * x[i];
      score[s] *= inverse[s];
    }
    const Real most = *std::max_element(score.begin(), score.end());
    Real sum = 0;
    for (size_t s = 0; s < n; ++s) sum += p[s] = std::exp(score[s] - most);
    for (size_t s = 0; s < n; ++s) {
      p[s] /= sum;
      for (size_t i = 0; i < width; ++i) mix[i] += p[s] * a.sources[s].row(r)[i];
    }
    rms_norm_grad_row(mix.data(), a.norm, Real(a.eps), a.dout.row(r), width, dmix.data(), false,
                      a.dnorm);
    Real dot_mix = 0;
    for (size_t i = 0; i < width; ++i) dot_mix += dmix[i] * mix[i];
    for (size_t s = 0; s < n; ++s) {
      const Real* x = a.sources[s].row(r);
      Real* dx = a.dsources[s].row(r);
      Real dscore = 0;
      for (size_t i = 0; i < width; ++i) dscore += dmix[i] * x[i];
      dscore = p[s] * (dscore - dot_mix);
      for (size_t i = 0; i < width; ++i) dx[i] += p[s] * dmix[i];
      if (n == 1) break;
      for (size_t i = 0; i < width; ++i) {
        const Real w = a.score_norm[i] * a.score_proj[i];
        dx[i] += dscore * inverse[s] * (w - inverse[s] * score[s] / Real(width) * x[i]);
        if (a.dscore_norm == nullptr) continue;
        a.dscore_norm[i] += dscore * inverse[s] * x[i] * a.score_proj[i];
        a.dscore_proj[i] += dscore * inverse[s] * x[i] * a.score_norm[i];
      }
    }
  }
};

}  // namespace support
