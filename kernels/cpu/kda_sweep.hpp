// One head of a KDA layer, and the sweep of its state over a few tokens. Included once per SIMD
// target.
#if defined(KERNELS_CPU_KDA_SWEEP_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_KDA_SWEEP_HPP_
#else
#define KERNELS_CPU_KDA_SWEEP_HPP_
#endif

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/kda.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// One head's view of the arguments and of the scratch.
struct Head {
  const KdaArgs& args;
  const Segment& segment;
  size_t index;
  size_t d, width;  // width = heads * d
  float* q;         // [chunk][d], as are k, v, decay, out
  float* k;
  float* v;
  float* decay;
  float* out;
  float* beta;  // [chunk]
  float rate;   // exp(A_log)

  float* window(uint32_t slot) const {  // [conv_width - 1][3 * width]
    return reinterpret_cast<float*>(args.state_base + slot * args.slot_stride + args.conv_offset);
  }
  float* state(uint32_t slot) const {  // [d / tile][d][tile] of this head
    return reinterpret_cast<float*>(args.state_base + slot * args.slot_stride +
                                    args.recurrent_offset) +
           index * d * d;
  }
  // Raw projections of the segment's row `row`; before row 0 the window continues backwards.
  const float* raw(long row) const {
    if (row >= 0)
      return args.qkv.data + (segment.row_begin + static_cast<size_t>(row)) * args.qkv.ld;
    return window(segment.slot) +
           (static_cast<long>(args.conv_width) - 1 + row) * static_cast<long>(3 * width);
  }
};

// The value columns of a state tile that are swept together: V vectors.
template <size_t V>
struct Strip {
  Lanes x[V];

  static KERNEL_FN Strip zero() {
    Strip strip;
#pragma GCC unroll 8
    for (size_t i = 0; i < V; ++i) strip.x[i] = Lanes::zero();
    return strip;
  }
};

// Decays one key's row of a strip and adds it to the prediction; kStore = false leaves the state
// for a second pass.
template <bool kStore, size_t V>
KERNEL_FN void decay_predict_row(float* state, Lanes decay, Lanes key, Strip<V>& predicted) {
#pragma GCC unroll 8
  for (size_t i = 0; i < V; ++i) {
    const Lanes s = kda_decay_predict(Lanes::load(state + i * kWidth), decay, key, predicted.x[i]);
    if (kStore) s.store(state + i * kWidth);
  }
}

// The update of token t, written over its values. It stays in memory: together with two sums per
// vector it would not fit the registers, and an operand of a multiply-add may as well be loaded.
template <size_t V>
KERNEL_FN const float* update_of(const Head& h, size_t t, size_t column,
                                 const Strip<V>& predicted) {
  float* update = h.v + t * h.d + column;
#pragma GCC unroll 8
  for (size_t i = 0; i < V; ++i) {
    kda_update(Lanes::load(update + i * kWidth), predicted.x[i], Lanes(h.beta[t]))
        .store(update + i * kWidth);
  }
  return update;
}

template <size_t V>
KERNEL_FN void store_out(const Head& h, size_t t, size_t column, const Strip<V>& out) {
#pragma GCC unroll 8
  for (size_t i = 0; i < V; ++i) out.x[i].store(h.out + t * h.d + column + i * kWidth);
}

// One token: the state is read twice and written once, the decay computed twice (to the same bits)
// rather than stored. Not inlined, as many_tokens: constants of the code around it would take the
// registers of its sums.
template <size_t V>
HWY_NOINLINE void single_token(const Head& h, float* state, size_t row_step, size_t column) {
  const size_t d = h.d;
  Strip<V> predicted = Strip<V>::zero();
  for (size_t i = 0; i < d; ++i) {
    decay_predict_row<false, V>(state + i * row_step, Lanes(h.decay[i]), Lanes(h.k[i]), predicted);
  }
  const float* update = update_of<V>(h, 0, column, predicted);
  Strip<V> out = Strip<V>::zero();
  for (size_t i = 0; i < d; ++i) {
    const Lanes decay(h.decay[i]), key(h.k[i]), query(h.q[i]);
    float* at = state + i * row_step;
#pragma GCC unroll 8
    for (size_t j = 0; j < V; ++j) {
      const Lanes s = Lanes::load(at + j * kWidth) * decay;
      kda_write_read(s, Lanes::load(update + j * kWidth), key, query, out.x[j])
          .store(at + j * kWidth);
    }
  }
  store_out(h, 0, column, out);
}

// Several tokens: one sweep writes and reads token t and decays and predicts token t + 1, so each
// state element is loaded and stored once per token.
template <size_t V>
HWY_NOINLINE void many_tokens(const Head& h, size_t tokens, float* state, size_t row_step,
                              size_t column) {
  const size_t d = h.d;
  Strip<V> predicted = Strip<V>::zero();
  for (size_t i = 0; i < d; ++i) {
    decay_predict_row<true, V>(state + i * row_step, Lanes(h.decay[i]), Lanes(h.k[i]), predicted);
  }
  for (size_t t = 0; t + 1 < tokens; ++t) {
    const float* key = h.k + t * d;
    const float* query = h.q + t * d;
    const float* next_decay = h.decay + (t + 1) * d;
    const float* next_key = h.k + (t + 1) * d;
    const float* update = update_of<V>(h, t, column, predicted);
    predicted = Strip<V>::zero();
    Strip<V> out = Strip<V>::zero();
    for (size_t i = 0; i < d; ++i) {
      float* at = state + i * row_step;
      // Read before the stores below, which for all the compiler knows could change them.
      const Lanes k(key[i]), q(query[i]), e(next_decay[i]), next_k(next_key[i]);
#pragma GCC unroll 8
      for (size_t j = 0; j < V; ++j) {
        const Lanes s = kda_write_read(Lanes::load(at + j * kWidth),
                                       Lanes::load(update + j * kWidth), k, q, out.x[j]);
        kda_decay_predict(s, e, next_k, predicted.x[j]).store(at + j * kWidth);
      }
    }
    store_out(h, t, column, out);
  }
  const size_t last = tokens - 1;
  const float* update = update_of<V>(h, last, column, predicted);
  Strip<V> out = Strip<V>::zero();
  for (size_t i = 0; i < d; ++i) {
    float* at = state + i * row_step;
    const Lanes key(h.k[last * d + i]), query(h.q[last * d + i]);
#pragma GCC unroll 8
    for (size_t j = 0; j < V; ++j) {
      kda_write_read(Lanes::load(at + j * kWidth), Lanes::load(update + j * kWidth), key, query,
                     out.x[j])
          .store(at + j * kWidth);
    }
  }
  store_out(h, last, column, out);
}

template <size_t V>
void recur_tiles(const Head& h, size_t tokens) {
  constexpr size_t kTile = V * kWidth;
  for (size_t column = 0; column < h.d; column += kTile) {
    float* state = h.state(h.segment.slot) + column * h.d;
    if (tokens == 1) {
      single_token<V>(h, state, kTile, column);
    } else {
      many_tokens<V>(h, tokens, state, kTile, column);
    }
  }
}

void recur(const Head& h, size_t tokens) {
  if (h.d % 32 == 0) return recur_tiles<2 * kPer16>(h, tokens);
  recur_tiles<kPer16>(h, tokens);
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
