#include "kernels/cpu/kda.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kda.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/kda.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr float kL2Eps = 1e-6f;

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

// Rows of a chunk lie far apart, where no hardware prefetch follows: these are asked for early.
constexpr size_t kRowsAhead = 8;

KERNEL_FN void fetch_row(const float* row, size_t count) {
  for (size_t i = 0; i < count; i += 16) __builtin_prefetch(row + i);
}

// Four taps of kWidth channels.
KERNEL_FN void load_taps(const float* conv, Lanes (&tap)[4]) {
  hn::LoadInterleaved4(FloatTag(), conv, tap[0].v, tap[1].v, tap[2].v, tap[3].v);
}

// Causal depthwise convolution of one of q, k and v for the rows from `row` on, then SiLU; taps in
// ascending order, current token last. A row is read once, a cache line at a time: the window moves
// through registers.
KERNEL_FN void convolve4(const Head& h, size_t part, size_t row, size_t tokens, float* out) {
  const size_t ld = h.args.qkv.ld;
  for (size_t c = 0; c < h.d; c += 16) {
    const size_t column = part * h.width + h.index * h.d + c;
    Lanes tap[kPer16][4], window[kPer16][3];
#pragma GCC unroll 4
    for (size_t j = 0; j < kPer16; ++j) {
      load_taps(h.args.conv + (column + j * kWidth) * 4, tap[j]);
#pragma GCC unroll 4
      for (long i = 0; i < 3; ++i)
        window[j][i] = Lanes::load(h.raw(static_cast<long>(row) - 3 + i) + column + j * kWidth);
    }
    const float* from = h.raw(static_cast<long>(row)) + column;
    for (size_t t = 0; t < tokens; ++t, from += ld) {
      __builtin_prefetch(from + kRowsAhead * ld);
#pragma GCC unroll 4
      for (size_t j = 0; j < kPer16; ++j) {
        const Lanes now = Lanes::load(from + j * kWidth);
        Lanes sum = multiply_add(tap[j][0], window[j][0], Lanes::zero());
        sum = multiply_add(tap[j][1], window[j][1], sum);
        sum = multiply_add(tap[j][2], window[j][2], sum);
        sum = multiply_add(tap[j][3], now, sum);
        math::silu(sum).store(out + t * h.d + c + j * kWidth);
        window[j][0] = window[j][1];
        window[j][1] = window[j][2];
        window[j][2] = now;
      }
    }
  }
}

// The same for any number of taps.
void convolve_any(const Head& h, size_t part, size_t row, size_t tokens, float* out) {
  const size_t taps = h.args.conv_width;
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < h.d; c += kWidth) {
      const size_t column = part * h.width + h.index * h.d + c;
      Lanes sum = Lanes::zero();
      for (size_t i = 0; i < taps; ++i) {
        float tap[kWidth];
        for (size_t j = 0; j < kWidth; ++j) tap[j] = h.args.conv[(column + j) * taps + i];
        const float* from = h.raw(static_cast<long>(row + t + i + 1) - static_cast<long>(taps));
        sum = multiply_add(Lanes::load(tap), Lanes::load(from + column), sum);
      }
      math::silu(sum).store(out + t * h.d + c);
    }
  }
}

void convolve(const Head& h, size_t row, size_t tokens) {
  float* const out[3] = {h.q, h.k, h.v};
  for (size_t part = 0; part < 3; ++part) {
    if (h.args.conv_width == 4) {
      convolve4(h, part, row, tokens, out[part]);
    } else {
      convolve_any(h, part, row, tokens, out[part]);
    }
  }
}

// x <- x / sqrt(sum x^2 + eps) * scale
KERNEL_FN void l2_normalise(float* x, size_t d, Lanes scale) {
  LaneSum sum;
  for (size_t i = 0; i < d; i += 16) {
    for (size_t j = 0; j < kPer16; ++j) {
      const Lanes value = Lanes::load(x + i + j * kWidth);
      sum.part[j] = multiply_add(value, value, sum.part[j]);
    }
  }
  float lane[16];
  sum.store(lane);
  const Lanes inverse = inverse_l2(Lanes(fold_lanes(lane)), kL2Eps);
  for (size_t i = 0; i < d; i += kWidth) (Lanes::load(x + i) * inverse * scale).store(x + i);
}

// What else a token needs before it meets the state: norms, decay, beta.
void prepare(const Head& h, size_t row, size_t t) {
  const size_t batch_row = h.segment.row_begin + row;
  float* q = h.q + t * h.d;
  float* k = h.k + t * h.d;
  l2_normalise(q, h.d, math::inverse_sqrt(Lanes(static_cast<float>(h.d))));
  l2_normalise(k, h.d, Lanes(1.0f));
  const float* f = h.args.decay.data + batch_row * h.args.decay.ld + h.index * h.d;
  const float* dt = h.args.dt_bias + h.index * h.d;
  fetch_row(f + kRowsAhead / 4 * h.args.decay.ld, h.d);
  for (size_t c = 0; c < h.d; c += kWidth) {
    kda_decay(Lanes::load(f + c), Lanes::load(dt + c), Lanes(h.rate), h.args.has_lower_bound,
              h.args.lower_bound)
        .store(h.decay + t * h.d + c);
  }
  h.beta[t] = math::sigmoid(Lanes(h.args.beta.data[batch_row * h.args.beta.ld + h.index])).first();
}

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
// rather than stored.
template <size_t V>
KERNEL_FN void single_token(const Head& h, float* state, size_t row_step, size_t column) {
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
KERNEL_FN void many_tokens(const Head& h, size_t tokens, float* state, size_t row_step,
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

// Gated RMSNorm of one token's output.
void write_out(const Head& h, size_t row, size_t t) {
  const float* o = h.out + t * h.d;
  const size_t batch_row = h.segment.row_begin + row;
  const float* gate = h.args.gate.data + batch_row * h.args.gate.ld + h.index * h.d;
  float* y = h.args.out.data + batch_row * h.args.out.ld + h.index * h.d;
  fetch_row(gate + kRowsAhead / 4 * h.args.gate.ld, h.d);
  LaneSum sum;
  for (size_t i = 0; i < h.d; i += 16) {
    for (size_t j = 0; j < kPer16; ++j) {
      const Lanes value = Lanes::load(o + i + j * kWidth);
      sum.part[j] = multiply_add(value, value, sum.part[j]);
    }
  }
  float lane[16];
  sum.store(lane);
  const Lanes inverse =
      inverse_rms(Lanes(fold_lanes(lane)), static_cast<float>(h.d), h.args.norm_eps);
  for (size_t i = 0; i < h.d; i += kWidth) {
    kda_output(Lanes::load(o + i), inverse, Lanes::load(h.args.norm + i), Lanes::load(gate + i))
        .store(y + i);
  }
}

// The convolution window after the segment's row `row`, into `slot`. Ascending order makes it safe
// in place.
void write_window(const Head& h, size_t row, uint32_t slot) {
  const long kept = static_cast<long>(h.args.conv_width) - 1;
  for (long i = 0; i < kept; ++i) {
    const float* from = h.raw(static_cast<long>(row) + 1 - kept + i);
    float* to = h.window(slot) + static_cast<size_t>(i) * 3 * h.width;
    for (size_t part = 0; part < 3; ++part) {
      const size_t column = part * h.width + h.index * h.d;
      std::memmove(to + column, from + column, h.d * sizeof(float));
    }
  }
}

// First segment row past `row` after which the state is wanted elsewhere, at most `end`.
size_t next_stop(const Head& h, size_t row, size_t end) {
  for (const KdaArgs::Capture& capture : h.args.captures) {
    const size_t after = static_cast<size_t>(capture.row) - h.segment.row_begin + 1;
    if (capture.row >= h.segment.row_begin + row && after < end) end = after;
  }
  return end;
}

void write_captures(const Head& h, size_t row) {
  for (const KdaArgs::Capture& capture : h.args.captures) {
    if (capture.row != h.segment.row_begin + row) continue;
    std::memcpy(h.state(capture.slot), h.state(h.segment.slot), h.d * h.d * sizeof(float));
    write_window(h, row, capture.slot);
  }
}

void kda_head_target(const KdaArgs& args, const Segment& segment, size_t head, float* scratch) {
  const size_t d = args.d, area = cpu::kKdaChunk * d;
  float* q = scratch;
  const Head h = {args,           segment,
                  head,           d,
                  args.heads * d, q,
                  q + area,       q + 2 * area,
                  q + 3 * area,   q + 4 * area,
                  q + 5 * area,   math::exp(Lanes(args.a_log[head])).first()};
  for (size_t row = 0; row < segment.row_count;) {
    const size_t end = next_stop(h, row, std::min<size_t>(row + cpu::kKdaChunk, segment.row_count));
    convolve(h, row, end - row);
    for (size_t i = row; i < end; ++i) prepare(h, i, i - row);
    recur(h, end - row);
    for (size_t i = row; i < end; ++i) write_out(h, i, i - row);
    write_captures(h, end - 1);
    row = end;
  }
  write_window(h, segment.row_count - 1, segment.slot);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(kda_head_target);

void cpu::kda_head(const KdaArgs& args, const Segment& segment, size_t head, float* scratch) {
  HWY_DYNAMIC_DISPATCH(kda_head_target)(args, segment, head, scratch);
}
}  // namespace kernels
#endif
