// Backward of a layer's attention half: KDA or MLA between its normed input and what it adds to the
// residual stream.
#pragma once

#include <span>

#include "kernels/train/gradient_ops.hpp"
#include "runtime/layer_columns.hpp"
#include "runtime/mla_layer.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/linear_grad.hpp"
#include "runtime/train/low_rank_grad.hpp"
#include "runtime/train/network_parameters.hpp"
#include "runtime/train/tape.hpp"

namespace runtime {

// Scratch that all layers share.
template <class Real>
struct AttentionScratch {
  explicit AttentionScratch(LowRankGrad<Real>& of_layers) : low_rank(of_layers) {}
  LowRankGrad<Real>& low_rank;  // of the layer at hand
  GrowingGrid<Real> core;     // gradient of o_proj's input
  GrowingGrid<Real> in;       // of the stacked input projection's output
  GrowingGrid<Real> wide;     // of decay, or of the expanded keys and values
  GrowingGrid<Real> gate;     // of the low-rank output gate
  GrowingGrid<Real> query;    // of q
  GrowingGrid<Real> latent;   // normalised latents
  GrowingGrid<Real> dlatent;  // their gradient
  GrowingGrid<Real> kv;       // expanded keys and values
};

// One layer's part of a backward pass over `sequences`: x is its normed input, dy the gradient of
// its output; dx [rows, hidden] is stored. dx null: nothing that learns lies below o_proj.
template <class Real>
struct AttentionRows {
  size_t rows = 0;
  std::span<const kernels::Sequence> sequences;
  kernels::Grid<const Real> x, dy;
  kernels::Grid<Real> dx;
};

template <class Real>
void kda_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config,
                  const KdaParameters<Real>& w, const KdaTape<Real>& tape,
                  const AttentionRows<Real>& at, AttentionScratch<Real>& scratch) {
  const KdaConfig& kda = config.kda;
  const KdaColumns columns(kda);
  const size_t rows = at.rows, width = columns.width, hidden = config.hidden, d = kda.d;
  const auto dcore = scratch.core.take(rows, width);
  const auto din = scratch.in.take(rows, columns.total);
  const auto ddecay = scratch.wide.take(rows, width);
  linear_grad<Real>(ops, {rows, hidden, width}, at.dy, tape.out, w.out, dcore);
  scratch.low_rank.run(&LayerAdapterWeights<Real>::out, rows, at.dy, tape.out, dcore);
  if (at.dx.data == nullptr) return;

  kernels::KdaGrad<Real> core;
  core.heads = kda.heads;
  core.d = d;
  core.conv_width = kda.conv_width;
  core.has_lower_bound = kda.lower_bound.has_value();
  core.lower_bound = kda.lower_bound.value_or(0.0f);
  core.norm_eps = config.norm_eps;
  core.sequences = at.sequences;
  core.qkv = tape.in;
  core.decay = tape.decay;
  core.beta = tape.in.columns(columns.beta);
  core.gate = kda.full_rank_gate ? tape.in.columns(columns.gate) : tape.gate;
  core.conv = w.conv.value;
  core.a_log = w.a_log.value;
  core.dt_bias = w.dt_bias.value;
  core.norm = w.norm.value;
  core.dout = dcore;
  core.dqkv = din;
  core.ddecay = ddecay;
  core.dbeta = din.columns(columns.beta);
  core.dgate = kda.full_rank_gate ? din.columns(columns.gate) : scratch.gate.take(rows, width);
  core.dconv = w.conv.grad;
  core.da_log = w.a_log.grad;
  core.ddt_bias = w.dt_bias.grad;
  core.dnorm = w.norm.grad;
  ops.kda_grad(core);

  linear_grad<Real>(ops, {rows, width, d}, ddecay, tape.in.columns(columns.decay), w.decay,
                    din.columns(columns.decay));
  if (!kda.full_rank_gate) {
    linear_grad<Real>(ops, {rows, width, d}, core.dgate, tape.in.columns(columns.gate), w.gate,
                      din.columns(columns.gate));
  }
  linear_grad<Real>(ops, {rows, columns.total, hidden}, din, at.x, w.in, at.dx);
}

template <class Real>
void mla_backward(kernels::GradientOps<Real>& ops, const ModelConfig& config,
                  const MlaParameters<Real>& w, const MlaTape<Real>& tape,
                  const AttentionRows<Real>& at, AttentionScratch<Real>& scratch) {
  const MlaConfig& mla = config.mla;
  const MlaColumns columns(mla);
  const size_t rows = at.rows, hidden = config.hidden, latent = mla.kv_lora;
  const size_t kv_width = size_t{mla.heads} * (mla.d_nope + mla.d_v);
  const auto dcore = scratch.core.take(rows, columns.value_width);
  const auto din = scratch.in.take(rows, columns.total);
  const auto dkv = scratch.wide.take(rows, kv_width);
  linear_grad<Real>(ops, {rows, hidden, columns.value_width}, at.dy, tape.out, w.out, dcore);
  scratch.low_rank.run(&LayerAdapterWeights<Real>::out, rows, at.dy, tape.out, dcore);
  if (at.dx.data == nullptr) return;

  // The serving forward works in the latent space; the gradient needs keys and values.
  const auto normed = scratch.latent.take(rows, latent);
  const auto kv = scratch.kv.take(rows, kv_width);
  ops.rms_norm(tape.in.columns(columns.latent), w.kv_norm.value, kLatentNormEps, normed, rows,
               latent);
  kernels::Product<Real> expand{rows,  kv_width, latent, normed, {w.kv.value, latent},
                                false, true,     kv,     false};
  ops.product(expand);

  const bool low_rank = mla.q_lora != 0;
  kernels::AttentionGrad<Real> core;
  core.heads = mla.heads;
  core.d_nope = mla.d_nope;
  core.d_rope = mla.d_rope;
  core.d_v = mla.d_v;
  core.sequences = at.sequences;
  core.q = low_rank ? tape.q : tape.in.columns(columns.query);
  core.kv = kv;
  core.k_rope = tape.in.columns(columns.latent + latent);
  if (mla.output_gate) {
    core.gate = tape.in.columns(columns.gate);
    core.dgate = din.columns(columns.gate);
  }
  core.dout = dcore;
  core.dq = low_rank ? scratch.query.take(rows, columns.query_width) : din.columns(columns.query);
  core.dkv = dkv;
  core.dk_rope = din.columns(columns.latent + latent);
  ops.attention_grad(core);

  const auto dlatent = scratch.dlatent.take(rows, std::max<size_t>(latent, mla.q_lora));
  linear_grad<Real>(ops, {rows, kv_width, latent}, dkv, normed, w.kv, dlatent);
  ops.rms_norm_grad({rows, latent, tape.in.columns(columns.latent), dlatent, w.kv_norm.value,
                     kLatentNormEps, din.columns(columns.latent), false, w.kv_norm.grad});
  if (low_rank) {
    linear_grad<Real>(ops, {rows, columns.query_width, mla.q_lora}, core.dq, tape.bottleneck, w.q,
                      dlatent);
    ops.rms_norm_grad({rows, mla.q_lora, tape.in.columns(columns.query), dlatent, w.q_norm.value,
                       kLatentNormEps, din.columns(columns.query), false, w.q_norm.grad});
  }
  linear_grad<Real>(ops, {rows, columns.total, hidden}, din, at.x, w.in, at.dx);
  using Modules = LayerAdapterWeights<Real>;
  scratch.low_rank.run(&Modules::query, rows, din.columns(columns.query), at.x, at.dx);
  scratch.low_rank.run(&Modules::latent, rows, din.columns(columns.latent), at.x, at.dx);
}

}  // namespace runtime
