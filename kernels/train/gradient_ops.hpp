// The operations of a backward pass, as one interface over a number type: float on the CPU's SIMD
// kernels (make_cpu_gradient_ops), double in the tests that compare with finite differences.
//
// d<name> holds the gradient of the loss with respect to <name>. Gradients of activations are
// stored; those of parameters, and of rows that several consumers read, are added. A null gradient
// of a parameter means that it is frozen: nothing is computed for it. Everything that an operation
// could recompute cheaply from its inputs is recomputed, not kept from the forward.
//
// An object has one thread and its own scratch. Sums run in one fixed order, so a result does not
// depend on anything but the inputs (and, in float, on the SIMD target).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/ops.hpp"

namespace kernels {

// Rows of a number type, `ld` numbers from one to the next.
template <class Real>
struct Grid {
  Real* data = nullptr;
  size_t ld = 0;

  Real* row(size_t i) const { return data + i * ld; }
  Grid columns(size_t first) const { return {data + first, ld}; }
  Grid from(size_t first_row) const { return {row(first_row), ld}; }
  operator Grid<const Real>() const { return {data, ld}; }
};

// The rows of one sequence, from its first token on.
struct Sequence {
  size_t begin = 0, count = 0;
};

// c[m, n] (+)= op(a)[m, k] op(b)[k, n]. A transposed a is stored [k, m], a transposed b [n, k]. So
//   y = x W^T: b transposed.   dx = dy W: none.   dW += dy^T x: a transposed, add.
template <class Real>
struct Product {
  size_t m = 0, n = 0, k = 0;
  Grid<const Real> a, b;
  bool a_transposed = false, b_transposed = false;
  Grid<Real> c;
  bool add = false;
};

// y = w x / rms(x). dx is stored, or added where `add`. dx may alias dy, not x.
template <class Real>
struct RmsNormGrad {
  size_t rows = 0, width = 0;
  Grid<const Real> x, dy;
  const Real* weight = nullptr;  // [width]
  float eps = 1e-5f;
  Grid<Real> dx;
  bool add = false;
  Real* dweight = nullptr;  // [width], or null
};

// h = act(gate, up), times `share` of its row where given (an expert's routing weight).
//   dgate, dup from dout; dshare[row] = sum over the width of dout h (unshared).
// inner, where given, receives share * h: what the weights after it multiplied.
template <class Real>
struct GluGrad {
  size_t rows = 0, width = 0;
  ActivationSpec activation;
  Grid<const Real> gate, up, dout;
  const Real* share = nullptr;  // [rows], or null for 1
  Grid<Real> dgate, dup;        // may alias gate and up
  Real* dshare = nullptr;       // [rows]; with share
  Grid<Real> inner;             // [rows, width], or null
};

// Causal softmax attention of every head of every sequence, in the expanded form of NoPE MLA:
//   key = [k_n of the head | k_r shared by all], out = softmax(q . key / sqrt(d_nope + d_rope)) v,
// times sigmoid(gate) where given.
template <class Real>
struct AttentionGrad {
  size_t heads = 0, d_nope = 0, d_rope = 0, d_v = 0;
  std::span<const Sequence> sequences;
  Grid<const Real> q;         // [rows, heads * (d_nope + d_rope)]
  Grid<const Real> kv;        // [rows, heads * (d_nope + d_v)]: k_n | v of each head
  Grid<const Real> k_rope;    // [rows, d_rope]
  Grid<const Real> gate;      // [rows, heads * d_v] before the sigmoid, or null
  Grid<const Real> dout;      // [rows, heads * d_v]
  Grid<Real> dq, dkv, dk_rope, dgate;
};

// One KDA layer between its projections: the operation of KdaArgs, every sequence from a state of
// zero. d is a multiple of 16.
template <class Real>
struct KdaGrad {
  size_t heads = 0, d = 0, conv_width = 4;
  bool has_lower_bound = false;
  float lower_bound = 0, norm_eps = 1e-5f;
  std::span<const Sequence> sequences;
  Grid<const Real> qkv;    // [rows, 3 D] raw projections
  Grid<const Real> decay;  // [rows, D]
  Grid<const Real> beta;   // [rows, heads] before the sigmoid
  Grid<const Real> gate;   // [rows, D] before the sigmoid
  const Real *conv = nullptr, *a_log = nullptr, *dt_bias = nullptr, *norm = nullptr;
  Grid<const Real> dout;  // [rows, D]
  Grid<Real> dqkv, ddecay, dbeta, dgate;
  Real *dconv = nullptr, *da_log = nullptr, *ddt_bias = nullptr, *dnorm = nullptr;  // all or none
};

// out = RMSNorm(mix of the sources; norm), see ResidualArgs: the last source is the prefix, and
// the score of a source is (score_norm * score_proj) . source / rms(source). With one source the
// mix is that source and the score parameters are null.
template <class Real>
struct ResidualGrad {
  size_t rows = 0, width = 0;
  float eps = 1e-5f;
  std::span<const Grid<const Real>> sources;
  const Real *score_norm = nullptr, *score_proj = nullptr, *norm = nullptr;  // [width]
  Grid<const Real> dout;
  std::span<const Grid<Real>> dsources;  // added to
  Real *dscore_norm = nullptr, *dscore_proj = nullptr, *dnorm = nullptr;
};

// Weights of the chosen experts from sigmoid scores, see RouteArgs.
template <class Real>
struct RouteGrad {
  size_t rows = 0, experts = 0, top_k = 0;
  bool renormalise = true;
  float scale = 1;
  Grid<const Real> logits;           // [rows, experts]
  std::span<const uint32_t> expert;  // [rows, top_k]
  const Real* dweight = nullptr;   // [rows, top_k]
  Grid<Real> dlogits;              // stored: zero for what was not chosen
};

// loss = sum over rows of weight[row] * -log softmax(logits[row])[target[row]].
template <class Real>
struct CrossEntropyGrad {
  size_t rows = 0, width = 0;
  Grid<Real> logits;                // overwritten with their gradient
  std::span<const int32_t> target;  // [rows]
  std::span<const float> weight;    // [rows]
  float* loss = nullptr;            // [rows] unweighted, or null
};

template <class Real>
class GradientOps {
 public:
  virtual ~GradientOps() = default;
  virtual void product(const Product<Real>& args) = 0;
  // The forward of RMSNorm: y = w x / rms(x).
  virtual void rms_norm(Grid<const Real> x, const Real* weight, float eps, Grid<Real> y,
                        size_t rows, size_t width) = 0;
  virtual void rms_norm_grad(const RmsNormGrad<Real>& args) = 0;
  virtual void glu_grad(const GluGrad<Real>& args) = 0;
  virtual void attention_grad(const AttentionGrad<Real>& args) = 0;
  virtual void kda_grad(const KdaGrad<Real>& args) = 0;
  virtual void residual_grad(const ResidualGrad<Real>& args) = 0;
  virtual void route_grad(const RouteGrad<Real>& args) = 0;
  virtual double cross_entropy(const CrossEntropyGrad<Real>& args) = 0;  // the loss
};

// Highway kernels, dispatched at run time. Use from one thread at a time.
std::unique_ptr<GradientOps<float>> make_cpu_gradient_ops();

}  // namespace kernels
