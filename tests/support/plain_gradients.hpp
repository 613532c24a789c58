// The operations of a backward pass as plain loops over any number type: the definition that fast
// kernels are compared with, and that finite differences check (in double). Formulas by hand from
// the forward; the recurrence is walked token by token.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/verify.hpp"
#include "kernels/train/gradient_ops.hpp"

namespace support {

template <class Real>
Real sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

template <class Real>
Real inverse_rms(const Real* x, size_t width, Real eps) {
  Real sum = 0;
  for (size_t i = 0; i < width; ++i) sum += x[i] * x[i];
  return 1 / std::sqrt(sum / Real(width) + eps);
}

// dx (stored or added) and dweight of y = w x / rms(x) for one row.
template <class Real>
void rms_norm_grad_row(const Real* x, const Real* weight, Real eps, const Real* dy, size_t width,
                       Real* dx, bool add, Real* dweight) {
  const Real r = inverse_rms(x, width, eps);
  Real dot = 0;
  for (size_t i = 0; i < width; ++i) dot += weight[i] * dy[i] * x[i];
  for (size_t i = 0; i < width; ++i) {
    const Real value = r * weight[i] * dy[i] - x[i] * r * r * r / Real(width) * dot;
    if (dweight != nullptr) dweight[i] += dy[i] * x[i] * r;
    dx[i] = add ? dx[i] + value : value;
  }
}

// One head of one sequence of a KDA layer: the forward with every intermediate kept, then its
// reverse (training.md of the design: the scan).
template <class Real>
class PlainKdaHead {
 public:
  using Vector = std::vector<Real>;
  PlainKdaHead(const kernels::KdaGrad<Real>& a, const kernels::Sequence& sequence, size_t head)
      : a_(a), s_(sequence), head_(head), d_(a.d), width_(a.heads * a.d) {}

  void run() {
    forward();
    backward();
  }

  // The gated output of a token, for a forward.
  std::vector<Vector> outputs() {
    forward();
    std::vector<Vector> all;
    for (const Token& t : tokens_) {
      Vector y(d_);
      const Real r = inverse_rms(t.o.data(), d_, Real(a_.norm_eps));
      for (size_t i = 0; i < d_; ++i) y[i] = t.o[i] * r * a_.norm[i] * sigmoid(t.z[i]);
      all.push_back(std::move(y));
    }
    return all;
  }

 private:
  struct Token {
    Vector conv[3], raw[3];  // convolution sums; after SiLU (q, k before their L2 norm)
    Vector q, k, v, g, z, o;
    Vector decayed, after;  // states [key][value]: S~ and S
    Vector u;               // v - S~^T k
    Real beta = 0;
  };

  size_t column(size_t part, size_t i) const { return part * width_ + head_ * d_ + i; }
  Real input(size_t part, long row, size_t i) const {
    return row < 0 ? Real(0) : a_.qkv.row(s_.begin + static_cast<size_t>(row))[column(part, i)];
  }
  long tap_row(size_t t, size_t j) const {
    return static_cast<long>(t + j + 1) - static_cast<long>(a_.conv_width);
  }
  Real rate() const { return std::exp(a_.a_log[head_]); }
  Real before_gate(size_t t, size_t i) const {
    return a_.decay.row(s_.begin + t)[head_ * d_ + i] + a_.dt_bias[head_ * d_ + i];
  }

  Vector l2(const Vector& x, Real scale) const {
    Real sum = 0;
    for (const Real value : x) sum += value * value;
    Vector y(x);
    for (Real& value : y) value *= scale / std::sqrt(sum + Real(1e-6f));
    return y;
  }

  void forward() {
    tokens_.assign(s_.count, Token());
    Vector state(d_ * d_, 0);
    for (size_t t = 0; t < s_.count; ++t) {
      Token& token = tokens_[t];
      for (size_t part = 0; part < 3; ++part) {
        for (size_t i = 0; i < d_; ++i) {
          Real sum = 0;
          for (size_t j = 0; j < a_.conv_width; ++j)
            sum += a_.conv[column(part, i) * a_.conv_width + j] * input(part, tap_row(t, j), i);
          token.conv[part].push_back(sum);
          token.raw[part].push_back(sum * sigmoid(sum));
        }
      }
      token.q = l2(token.raw[0], 1 / std::sqrt(Real(d_)));
      token.k = l2(token.raw[1], 1);
      token.v = token.raw[2];
      token.beta = sigmoid(a_.beta.row(s_.begin + t)[head_]);
      for (size_t i = 0; i < d_; ++i) {
        const Real x = before_gate(t, i);
        token.g.push_back(a_.has_lower_bound ? Real(a_.lower_bound) * sigmoid(rate() * x)
                                             : -rate() * std::log1p(std::exp(x)));
        token.z.push_back(a_.gate.row(s_.begin + t)[head_ * d_ + i]);
      }
      step(token, state);
    }
  }

  void step(Token& token, Vector& state) {
    for (size_t i = 0; i < d_; ++i)
      for (size_t j = 0; j < d_; ++j) state[i * d_ + j] *= std::exp(token.g[i]);
    token.decayed = state;
    token.u = token.v;
    for (size_t i = 0; i < d_; ++i)
      for (size_t j = 0; j < d_; ++j) token.u[j] -= state[i * d_ + j] * token.k[i];
    token.o.assign(d_, 0);
    for (size_t i = 0; i < d_; ++i) {
      for (size_t j = 0; j < d_; ++j) {
        state[i * d_ + j] += token.beta * token.k[i] * token.u[j];
        token.o[j] += state[i * d_ + j] * token.q[i];
      }
    }
    token.after = state;
  }

  void backward() {
    Vector g(d_ * d_, 0);  // dL/dS from later tokens
    std::vector<Vector> dconv[3];
    for (auto& part : dconv) part.assign(s_.count, Vector(d_, 0));
    for (size_t t = s_.count; t-- > 0;) {
      const Token& token = tokens_[t];
      const size_t row = s_.begin + t;
      const Vector dout = output_grad(token, row);
      Vector dq(d_, 0), dk(d_, 0), dv(d_, 0), dg(d_, 0);
      Real dbeta = 0;
      reverse_step(token, dout, g, dq, dk, dv, dg, dbeta);
      if (a_.dbeta.data != nullptr)
        a_.dbeta.row(row)[head_] = dbeta * token.beta * (1 - token.beta);
      decay_grad(token, t, dg);
      l2_grad(token.raw[0], 1 / std::sqrt(Real(d_)), dq);
      l2_grad(token.raw[1], 1, dk);
      const Vector* parts[] = {&dq, &dk, &dv};
      for (size_t part = 0; part < 3; ++part) {
        for (size_t i = 0; i < d_; ++i) {
          const Real c = token.conv[part][i], s = sigmoid(c);
          dconv[part][t][i] = (*parts[part])[i] * s * (1 + c * (1 - s));
        }
      }
    }
    for (size_t part = 0; part < 3; ++part) conv_grad(part, dconv[part]);
  }

  // Through the gated norm: returns dL/do.
  Vector output_grad(const Token& token, size_t row) {
    Vector inner(d_), dy(d_), dox(d_);
    const Real r = inverse_rms(token.o.data(), d_, Real(a_.norm_eps));
    const Real* dout = a_.dout.row(row) + head_ * d_;
    for (size_t i = 0; i < d_; ++i) {
      const Real s = sigmoid(token.z[i]);
      a_.dgate.row(row)[head_ * d_ + i] = dout[i] * token.o[i] * r * a_.norm[i] * s * (1 - s);
      dy[i] = dout[i] * s;
    }
    rms_norm_grad_row(token.o.data(), a_.norm, Real(a_.norm_eps), dy.data(), d_, dox.data(), false,
                      a_.dnorm);
    return dox;
  }

  void reverse_step(const Token& token, const Vector& dout, Vector& g, Vector& dq, Vector& dk,
                    Vector& dv, Vector& dg, Real& dbeta) {
    for (size_t i = 0; i < d_; ++i) {
      for (size_t j = 0; j < d_; ++j) {
        dq[i] += token.after[i * d_ + j] * dout[j];
        g[i * d_ + j] += token.q[i] * dout[j];
      }
    }
    Vector w(d_, 0);
    for (size_t i = 0; i < d_; ++i) {
      for (size_t j = 0; j < d_; ++j) {
        w[i] += g[i * d_ + j] * token.u[j];
        dv[j] += token.beta * g[i * d_ + j] * token.k[i];
      }
    }
    for (size_t i = 0; i < d_; ++i) {
      dbeta += token.k[i] * w[i];
      dk[i] = token.beta * w[i];
      for (size_t j = 0; j < d_; ++j) {
        dk[i] -= token.decayed[i * d_ + j] * dv[j];
        g[i * d_ + j] -= token.k[i] * dv[j];
        dg[i] += g[i * d_ + j] * token.decayed[i * d_ + j];
        g[i * d_ + j] *= std::exp(token.g[i]);
      }
    }
  }

  void decay_grad(const Token& token, size_t t, const Vector& dg) {
    for (size_t i = 0; i < d_; ++i) {
      const Real x = before_gate(t, i);
      const Real bound = Real(a_.lower_bound);
      Real dx, drate;
      if (a_.has_lower_bound) {
        const Real dz = dg[i] * token.g[i] * (1 - token.g[i] / bound);
        dx = dz * rate();
        drate = dz * x;
      } else {
        dx = -dg[i] * rate() * sigmoid(x);
        drate = dg[i] * token.g[i] / rate();
      }
      a_.ddecay.row(s_.begin + t)[head_ * d_ + i] = dx;
      if (a_.ddt_bias != nullptr) {
        a_.ddt_bias[head_ * d_ + i] += dx;
        a_.da_log[head_] += drate * rate();
      }
    }
  }

  void l2_grad(const Vector& x, Real scale, Vector& dy) const {
    Real sum = 0, dot = 0;
    for (const Real value : x) sum += value * value;
    const Real r = 1 / std::sqrt(sum + Real(1e-6f));
    for (size_t i = 0; i < d_; ++i) dot += x[i] * r * dy[i];
    for (size_t i = 0; i < d_; ++i) dy[i] = scale * r * (dy[i] - x[i] * r * dot);
  }

  void conv_grad(size_t part, const std::vector<Vector>& dconv) {
    for (size_t t = 0; t < s_.count; ++t)
      for (size_t i = 0; i < d_; ++i) a_.dqkv.row(s_.begin + t)[column(part, i)] = 0;
    for (size_t t = 0; t < s_.count; ++t) {
      for (size_t i = 0; i < d_; ++i) {
        for (size_t j = 0; j < a_.conv_width; ++j) {
          const long from = tap_row(t, j);
          if (from < 0) continue;
          const size_t tap = column(part, i) * a_.conv_width + j;
          a_.dqkv.row(s_.begin + static_cast<size_t>(from))[column(part, i)] +=
              dconv[t][i] * a_.conv[tap];
          if (a_.dconv != nullptr) a_.dconv[tap] += dconv[t][i] * input(part, from, i);
        }
      }
    }
  }

  const kernels::KdaGrad<Real>& a_;
  kernels::Sequence s_;
  size_t head_, d_, width_;
  std::vector<Token> tokens_;
};

}  // namespace support
