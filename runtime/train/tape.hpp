// What a forward pass leaves for the backward: the inputs and outputs of its operations, as views.
// In training they are the layers' own scratch (runtime/hybrid_network.hpp), so nothing is copied;
// what can be recomputed cheaply (convolutions, gates, states, attention weights, the inside of
// experts) is not kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/train/gradient_ops.hpp"

namespace runtime {

template <class Real>
struct KdaTape {
  kernels::Grid<const Real> in;     // [rows, KdaColumns::total]
  kernels::Grid<const Real> decay;  // [rows, D]
  kernels::Grid<const Real> gate;   // [rows, D]: of the low-rank output gate, else unused
  kernels::Grid<const Real> out;    // [rows, D] input of o_proj
};

template <class Real>
struct MlaTape {
  kernels::Grid<const Real> in;          // [rows, MlaColumns::total]
  kernels::Grid<const Real> bottleneck;  // [rows, q_lora] normalised, and
  kernels::Grid<const Real> q;           // [rows, query width]: only with q_lora
  kernels::Grid<const Real> out;         // [rows, heads * d_v] input of o_proj
};

template <class Real>
struct FfnTape {
  kernels::Grid<const Real> in;      // [rows, gate | up] or [rows, MixtureColumns::total]
  kernels::Grid<const Real> inner;   // [rows, width] of the dense layer or the shared experts
  kernels::Grid<const Real> mixed;   // [rows, latent]: sum of the experts
  kernels::Grid<const Real> normed;  // its norm, where there is one
  size_t top_k = 0;
  std::span<const uint32_t> expert;  // [rows, top_k]
  std::span<const Real> share;       // [rows, top_k] routing weights
};

template <class Real>
struct LayerTape {
  kernels::Grid<const Real> attention_in, ffn_in;    // [rows, hidden] normed inputs
  kernels::Grid<const Real> attention_out, ffn_out;  // [rows, hidden]
  KdaTape<Real> kda;                                 // that of the layer's kind is set
  MlaTape<Real> mla;
  FfnTape<Real> ffn;
};

template <class Real>
struct Tape {
  size_t rows = 0;
  std::span<const int32_t> tokens;               // [rows]
  std::span<const kernels::Sequence> sequences;  // ascending, together all rows
  kernels::Grid<const Real> embedded;            // [rows, hidden]
  std::vector<LayerTape<Real>> layers;
  kernels::Grid<const Real> head;  // [rows, hidden] input of the head
};

}  // namespace runtime
