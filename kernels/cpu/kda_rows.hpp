// What the tokens of a KDA chunk need before they meet the state, and what is left to do with their
// outputs: everything but the recurrence. Included once per SIMD target.
#if defined(KERNELS_CPU_KDA_ROWS_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_KDA_ROWS_HPP_
#else
#define KERNELS_CPU_KDA_ROWS_HPP_
#endif

#include "kernels/cpu/kda_head.hpp"
#include "kernels/cpu/lane_group.hpp"
#include "kernels/cpu/row_vectors.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr float kL2Eps = 1e-6f;

// Rows of the projections in the cache beyond L1 are asked for this many tokens before their turn:
// the distance between them would often fill one set of L1.
constexpr size_t kRowsAhead = 4;

// Calls fn.operator()<N>(offset) for groups of N vectors that cover `count` floats, a multiple of
// 16.
template <class Fn>
KERNEL_FN void for_groups(size_t count, const Fn& fn) {
  size_t at = 0;
  for (; at + 4 * kWidth <= count; at += 4 * kWidth) fn.template operator()<4>(at);
  for (; at < count; at += 16) fn.template operator()<kPer16>(at);
}

// Four taps of kWidth channels.
KERNEL_FN void load_taps(const float* conv, Lanes (&tap)[4]) {
  hn::LoadInterleaved4(FloatTag(), conv, tap[0].v, tap[1].v, tap[2].v, tap[3].v);
}

// Causal depthwise convolution of one of q, k and v for the rows from `row` on; taps in ascending
// order, current token last. A row is read once, a cache line at a time: the window moves through
// registers.
void convolve4(const Head& h, size_t part, size_t row, size_t tokens, float* out) {
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
        sum.store(out + t * h.d + c + j * kWidth);
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
      sum.store(out + t * h.d + c);
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

// x <- SiLU(x)
void activate(float* x, size_t count) {
  for_groups(count, [&]<size_t N>(size_t at) KERNEL_LAMBDA {
    math::silu(LaneGroup<N>::load(x + at)).store(x + at);
  });
}

KERNEL_FN float sum_of_squares(const float* x, size_t d) {
  LaneSum sum;
  for (size_t i = 0; i < d; i += 16) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kPer16; ++j) {
      const Lanes value = Lanes::load(x + i + j * kWidth);
      sum.part[j] = multiply_add(value, value, sum.part[j]);
    }
  }
  return fold(sum);
}

// A number for each token of a chunk; some more at its end keep vectors whole.
struct PerToken {
  float x[cpu::kKdaChunk] = {};

  // x <- fn(x) for the first `tokens`, several to a vector: a root and a quotient take long.
  template <class Fn>
  KERNEL_FN void transform(size_t tokens, const Fn& fn) {
    for (size_t t = 0; t < tokens; t += kWidth) fn(Lanes::load(x + t)).store(x + t);
  }
};
static_assert(cpu::kKdaChunk % kWidth == 0);

KERNEL_FN PerToken sums_of_squares(const float* x, size_t d, size_t tokens) {
  PerToken sums;
  for (size_t t = 0; t < tokens; ++t) sums.x[t] = sum_of_squares(x + t * d, d);
  return sums;
}

// x[t] <- x[t] / sqrt(sum of x[t]^2 + eps) * scale
template <bool kScaled>
void l2_normalise(float* x, size_t d, size_t tokens, Lanes scale) {
  PerToken factor = sums_of_squares(x, d, tokens);
  factor.transform(tokens, [](Lanes sum) KERNEL_LAMBDA { return inverse_l2(sum, kL2Eps); });
  for (size_t t = 0; t < tokens; ++t) {
    const Lanes inverse(factor.x[t]);
    float* const row = x + t * d;
    for (size_t i = 0; i < d; i += kWidth) {
      const Lanes unit = Lanes::load(row + i) * inverse;
      (kScaled ? unit * scale : unit).store(row + i);
    }
  }
}

void decays(const Head& h, size_t row, size_t tokens) {
  const float* const dt = h.args.dt_bias + h.index * h.d;
  for (size_t t = 0; t < tokens; ++t) {
    const size_t batch_row = h.segment.row_begin + row + t;
    const float* const f = h.args.decay.data + batch_row * h.args.decay.ld + h.index * h.d;
    float* const to = h.decay + t * h.d;
    for_groups(h.d, [&]<size_t N>(size_t at) KERNEL_LAMBDA {
      using F = LaneGroup<N>;
      kda_decay(F::load(f + at), F::load(dt + at), F(h.rate), h.args.has_lower_bound,
                h.args.lower_bound)
          .store(to + at);
    });
  }
}

void betas(const Head& h, size_t row, size_t tokens) {
  const float* const from =
      h.args.beta.data + (h.segment.row_begin + row) * h.args.beta.ld + h.index;
  PerToken beta;
  for (size_t t = 0; t < tokens; ++t) beta.x[t] = from[t * h.args.beta.ld];
  beta.transform(tokens, [](Lanes x) KERNEL_LAMBDA { return math::sigmoid(x); });
  std::copy(beta.x, beta.x + tokens, h.beta);
}

// q, k, v, decay and beta of `tokens` rows from the segment's row `row` on.
void prepare(const Head& h, size_t row, size_t tokens) {
  convolve(h, row, tokens);
  for (float* const x : {h.q, h.k, h.v}) activate(x, tokens * h.d);
  l2_normalise<true>(h.q, h.d, tokens, math::inverse_sqrt(Lanes(static_cast<float>(h.d))));
  l2_normalise<false>(h.k, h.d, tokens, Lanes(1.0f));
  decays(h, row, tokens);
  betas(h, row, tokens);
}

// Gated RMSNorm of the outputs of `tokens` rows from the segment's row `row` on.
void write_out(const Head& h, size_t row, size_t tokens) {
  PerToken factor = sums_of_squares(h.out, h.d, tokens);
  factor.transform(tokens, [&](Lanes sum) KERNEL_LAMBDA {
    return inverse_rms(sum, static_cast<float>(h.d), h.args.norm_eps);
  });
  for (size_t t = 0; t < tokens; ++t) {
    const size_t batch_row = h.segment.row_begin + row + t;
    const float* const o = h.out + t * h.d;
    const float* const gate = h.args.gate.data + batch_row * h.args.gate.ld + h.index * h.d;
    float* const y = h.args.out.data + batch_row * h.args.out.ld + h.index * h.d;
    for_groups(h.d, [&]<size_t N>(size_t at) KERNEL_LAMBDA {
      using F = LaneGroup<N>;
      kda_output(F::load(o + at), F(factor.x[t]), F::load(h.args.norm + at), F::load(gate + at))
          .store(y + at);
    });
  }
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
