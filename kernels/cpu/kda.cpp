#include "kernels/cpu/kda.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kda.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/kda_sweep.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr float kL2Eps = 1e-6f;

// Rows lie far apart, where no hardware prefetch follows, and often at a distance that would fill
// one set of L1: a head's part of them is asked for into L2 a chunk ahead, and into L1 just before.
constexpr size_t kRowsAhead = 4;

KERNEL_FN void fetch_ahead(const Rows& rows, size_t row, size_t column, size_t count) {
  const float* from = rows.data + (row + cpu::kKdaChunk) * rows.ld + column;
  for (size_t i = 0; i < count; i += 16) __builtin_prefetch(from + i, 0, 2);
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
  if (row + cpu::kKdaChunk < h.segment.row_count) {
    for (size_t part = 0; part < 3; ++part)
      fetch_ahead(h.args.qkv, batch_row, part * h.width + h.index * h.d, h.d);
    fetch_ahead(h.args.decay, batch_row, h.index * h.d, h.d);
    fetch_ahead(h.args.gate, batch_row, h.index * h.d, h.d);
  }
  for (size_t c = 0; c < h.d; c += kWidth) {
    kda_decay(Lanes::load(f + c), Lanes::load(dt + c), Lanes(h.rate), h.args.has_lower_bound,
              h.args.lower_bound)
        .store(h.decay + t * h.d + c);
  }
  h.beta[t] = math::sigmoid(Lanes(h.args.beta.data[batch_row * h.args.beta.ld + h.index])).first();
}

// Gated RMSNorm of one token's output.
void write_out(const Head& h, size_t row, size_t t) {
  const float* o = h.out + t * h.d;
  const size_t batch_row = h.segment.row_begin + row;
  const float* gate = h.args.gate.data + batch_row * h.args.gate.ld + h.index * h.d;
  float* y = h.args.out.data + batch_row * h.args.out.ld + h.index * h.d;
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

// What the next head of a single token will wait for while its sums run, but for the state, which
// is a stream: its inputs and its part of the window.
void fetch_next_head(const Head& h) {
  const size_t row = h.segment.row_begin, column = (h.index + 1) * h.d;
  const auto fetch = [&](const float* from) KERNEL_LAMBDA {
    for (size_t i = 0; i < h.d; i += 16) __builtin_prefetch(from + column + i);
  };
  for (size_t part = 0; part < 3; ++part) {
    fetch(h.args.qkv.data + row * h.args.qkv.ld + part * h.width);
    for (size_t i = 0; i + 1 < h.args.conv_width; ++i)
      fetch(h.window(h.segment.slot) + (3 * i + part) * h.width);
  }
  fetch(h.args.decay.data + row * h.args.decay.ld);
  fetch(h.args.gate.data + row * h.args.gate.ld);
}

void run_head(const KdaArgs& args, const Segment& segment, size_t head, bool last, float* scratch) {
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
    if (segment.row_count == 1 && !last) fetch_next_head(h);
    recur(h, end - row);
    for (size_t i = row; i < end; ++i) write_out(h, i, i - row);
    write_captures(h, end - 1);
    row = end;
  }
  write_window(h, segment.row_count - 1, segment.slot);
}

void kda_heads_target(const KdaArgs& args, const Segment& segment, const cpu::KdaHeads& heads,
                      float* scratch) {
  for (size_t head = heads.begin; head < heads.end; ++head)
    run_head(args, segment, head, head + 1 == heads.end, scratch);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(kda_heads_target);

void cpu::kda_heads(const KdaArgs& args, const Segment& segment, const KdaHeads& heads,
                    float* scratch) {
  HWY_DYNAMIC_DISPATCH(kda_heads_target)(args, segment, heads, scratch);
}
}  // namespace kernels
#endif
