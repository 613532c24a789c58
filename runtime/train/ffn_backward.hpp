// Backward of a layer's feed-forward half: dense, or shared experts beside a mixture of routed ones
// in a latent space.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/train/gradient_ops.hpp"
#include "runtime/layer_columns.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/linear_grad.hpp"
#include "runtime/train/low_rank_grad.hpp"
#include "runtime/train/network_parameters.hpp"
#include "runtime/train/tape.hpp"

namespace runtime {

// Scratch that all layers share.
template <class Real>
struct FfnBackwardScratch {
  explicit FfnBackwardScratch(LowRankGrad<Real>& of_layers) : low_rank(of_layers) {}
  LowRankGrad<Real>& low_rank;  // of the layer at hand
  GrowingGrid<Real> in;      // gradient of the stacked input projection's output
  GrowingGrid<Real> inner;   // of the dense or shared inner width
  GrowingGrid<Real> normed;  // of the normed sum of experts, then of the sum
  // One expert's rows: inputs, gradients of its output, gate | up and its gradient, inner values.
  GrowingGrid<Real> z, dout, dz, hidden, dhidden, expert_inner, dinner;
  std::vector<uint32_t> rows, slots;  // batch rows of one expert, and where in [rows, top_k]
  std::vector<Real> share, dshare;    // routing weights of one expert's rows
  std::vector<Real> dweight;          // [rows, top_k]
};

template <class Real>
struct FfnRows {
  size_t rows = 0;
  kernels::Grid<const Real> x, dy;
  kernels::Grid<Real> dx;
};

// The gated activation over `gate_column` and `up_column` of the stacked projection, then `down`.
template <class Real>
void gated_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config, size_t width,
                    size_t gate_column, size_t up_column, const Weight<Real>& down,
                    const FfnTape<Real>& tape, const FfnRows<Real>& at, kernels::Grid<Real> din,
                    FfnBackwardScratch<Real>& scratch) {
  const auto dinner = scratch.inner.take(at.rows, width);
  linear_grad<Real>(ops, {at.rows, config.hidden, width}, at.dy, tape.inner, down, dinner);
  scratch.low_rank.run(&LayerAdapterWeights<Real>::down, at.rows, at.dy, tape.inner, dinner);
  kernels::GluGrad<Real> glu;
  glu.rows = at.rows;
  glu.width = width;
  glu.activation = config.ffn.activation;
  glu.gate = tape.in.columns(gate_column);
  glu.up = tape.in.columns(up_column);
  glu.dout = dinner;
  glu.dgate = din.columns(gate_column);
  glu.dup = din.columns(up_column);
  ops.glu_grad(glu);
}

// Copies the rows `index` of `from`, or adds the rows of `from` to the rows `index` of `to`.
template <class Real>
void gather_rows(kernels::Grid<const Real> from, const std::vector<uint32_t>& index, size_t width,
                 kernels::Grid<Real> to) {
  for (size_t i = 0; i < index.size(); ++i) std::copy_n(from.row(index[i]), width, to.row(i));
}
template <class Real>
void add_to_rows(kernels::Grid<const Real> from, const std::vector<uint32_t>& index, size_t width,
                 kernels::Grid<Real> to) {
  for (size_t i = 0; i < index.size(); ++i) {
    const Real* source = from.row(i);
    Real* target = to.row(index[i]);
    for (size_t j = 0; j < width; ++j) target[j] += source[j];
  }
}

// The rows that chose one expert: dmixed is the gradient of the weighted sum of experts; dz is
// added to. Gradients of the routing weights go to scratch.dweight.
template <class Real>
void expert_backward(kernels::GradientOps<Real>& ops, const FfnConfig& ffn, size_t routed_width,
                     const ExpertParameters<Real>& w,
                     const ExpertLowRankWeights<Real>& adapter, kernels::Grid<const Real> z,
                     kernels::Grid<const Real> dmixed, kernels::Grid<Real> dz,
                     FfnBackwardScratch<Real>& scratch) {
  const size_t count = scratch.rows.size(), width = ffn.expert_width;
  const auto x = scratch.z.take(count, routed_width), dx = scratch.dz.take(count, routed_width);
  const auto dout = scratch.dout.take(count, routed_width);
  const auto hidden = scratch.hidden.take(count, 2 * width);
  const auto dhidden = scratch.dhidden.take(count, 2 * width);
  const auto inner = scratch.expert_inner.take(count, width);
  const auto dinner = scratch.dinner.take(count, width);
  gather_rows<Real>(z, scratch.rows, routed_width, x);
  gather_rows<Real>(dmixed, scratch.rows, routed_width, dout);
  ops.product(
      {count, 2 * width, routed_width, x, {w.in.value, routed_width}, false, true, hidden, false});
  scratch.low_rank.forward(adapter.w1, count, x, hidden);
  scratch.low_rank.forward(adapter.w3, count, x, hidden.columns(width));
  linear_input_grad<Real>(ops, {count, routed_width, width}, dout, w.out.value, dinner);
  scratch.low_rank.input(adapter.w2, count, dout, dinner);
  scratch.dshare.resize(count);
  kernels::GluGrad<Real> glu;
  glu.rows = count;
  glu.width = width;
  glu.activation = ffn.activation;
  glu.gate = hidden;
  glu.up = hidden.columns(width);
  glu.dout = dinner;
  glu.share = scratch.share.data();
  glu.dgate = dhidden;
  glu.dup = dhidden.columns(width);
  glu.dshare = scratch.dshare.data();
  glu.inner = inner;  // times its share: the gradient of w2 needs no weighted copy of dout
  ops.glu_grad(glu);
  linear_weight_grad<Real>(ops, {count, routed_width, width}, dout, inner, w.out.grad);
  scratch.low_rank.weights(adapter.w2, count, dout, inner);
  linear_grad<Real>(ops, {count, 2 * width, routed_width}, dhidden, x, w.in, dx);
  scratch.low_rank.run(adapter.w1, count, dhidden, x, dx);
  scratch.low_rank.run(adapter.w3, count, dhidden.columns(width), x, dx);
  add_to_rows<Real>(dx, scratch.rows, routed_width, dz);
  for (size_t i = 0; i < count; ++i) scratch.dweight[scratch.slots[i]] = scratch.dshare[i];
}

// All routed experts, in ascending id.
template <class Real>
void experts_backward(kernels::GradientOps<Real>& ops, const FfnConfig& ffn, size_t routed_width,
                      const std::vector<ExpertParameters<Real>>& experts, const FfnTape<Real>& tape,
                      kernels::Grid<const Real> z, kernels::Grid<const Real> dmixed,
                      kernels::Grid<Real> dz, FfnBackwardScratch<Real>& scratch) {
  const LayerAdapterWeights<Real>* adapter = scratch.low_rank.layer();
  const bool adapted = adapter != nullptr && !adapter->experts.empty();
  scratch.dweight.assign(tape.expert.size(), 0);
  for (uint32_t id = 0; id < experts.size(); ++id) {
    scratch.rows.clear();
    scratch.slots.clear();
    scratch.share.clear();
    for (size_t slot = 0; slot < tape.expert.size(); ++slot) {
      if (tape.expert[slot] != id) continue;
      scratch.rows.push_back(static_cast<uint32_t>(slot / tape.top_k));
      scratch.slots.push_back(static_cast<uint32_t>(slot));
      scratch.share.push_back(tape.share[slot]);
    }
    if (scratch.rows.empty()) continue;
    expert_backward<Real>(ops, ffn, routed_width, experts[id],
                          adapted ? adapter->experts[id] : ExpertLowRankWeights<Real>{}, z, dmixed,
                          dz, scratch);
  }
}

template <class Real>
void mixture_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config,
                      const FfnParameters<Real>& w, const FfnTape<Real>& tape,
                      const FfnRows<Real>& at, FfnBackwardScratch<Real>& scratch) {
  const FfnConfig& ffn = config.ffn;
  const MixtureColumns columns(config);
  const size_t rows = at.rows, hidden = config.hidden, width = columns.routed_width;
  const auto din = scratch.in.take(rows, columns.total);
  if (w.down.value != nullptr) {
    gated_backward(ops, config, columns.shared_width, columns.gate, columns.up, w.down, tape, at,
                   din, scratch);
  }
  const bool latent = ffn.latent != 0;
  kernels::Grid<const Real> dmixed = at.dy;
  if (latent) {
    const auto dnormed = scratch.normed.take(rows, width);
    linear_grad<Real>(ops, {rows, hidden, width}, at.dy, ffn.latent_norm ? tape.normed : tape.mixed,
                      w.up, dnormed);
    if (ffn.latent_norm) {
      ops.rms_norm_grad({rows, width, tape.mixed, dnormed, w.norm.value, config.norm_eps, dnormed,
                         false, w.norm.grad});
    }
    dmixed = dnormed;
    for (size_t row = 0; row < rows; ++row) std::fill_n(din.row(row), width, Real(0));
    experts_backward<Real>(ops, ffn, width, w.experts, tape, tape.in, dmixed, din, scratch);
  }
  // Without a latent space the experts read the layer's input itself: their part of dx comes after
  // the stack's.
  const auto route = [&] {
    kernels::RouteGrad<Real> args;
    args.rows = rows;
    args.experts = ffn.experts;
    args.top_k = ffn.top_k;
    args.renormalise = ffn.renormalise;
    args.scale = ffn.routed_scale;
    args.logits = tape.in.columns(columns.router);
    args.expert = tape.expert;
    args.dweight = scratch.dweight.data();
    args.dlogits = din.columns(columns.router);
    ops.route_grad(args);
    linear_grad<Real>(ops, {rows, columns.total, hidden}, din, at.x, w.in, at.dx);
    scratch.low_rank.run(&LayerAdapterWeights<Real>::gate_up, rows, din.columns(columns.gate), at.x,
                         at.dx);
  };
  if (latent) return route();
  const auto dx = scratch.normed.take(rows, width);
  for (size_t row = 0; row < rows; ++row) std::fill_n(dx.row(row), width, Real(0));
  experts_backward<Real>(ops, ffn, width, w.experts, tape, at.x, dmixed, dx, scratch);
  route();
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < hidden; ++i) at.dx.row(row)[i] += dx.row(row)[i];
}

template <class Real>
void ffn_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config, uint32_t layer,
                  const FfnParameters<Real>& w, const FfnTape<Real>& tape, const FfnRows<Real>& at,
                  FfnBackwardScratch<Real>& scratch) {
  if (config.is_moe(layer)) return mixture_backward(ops, config, w, tape, at, scratch);
  const size_t width = config.ffn.dense_width;
  const auto din = scratch.in.take(at.rows, 2 * width);
  gated_backward(ops, config, width, 0, width, w.down, tape, at, din, scratch);
  linear_grad<Real>(ops, {at.rows, 2 * width, config.hidden}, din, at.x, w.in, at.dx);
  scratch.low_rank.run(&LayerAdapterWeights<Real>::gate_up, at.rows, din, at.x, at.dx);
}

}  // namespace runtime
