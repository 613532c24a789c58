// What a KDA token needs before it meets the state and after its gradients left it: convolution,
// norms and gates, and their derivatives. Included once per SIMD target.
#if defined(KERNELS_TRAIN_KDA_TOKENS_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_KDA_TOKENS_HPP_
#else
#define KERNELS_TRAIN_KDA_TOKENS_HPP_
#endif

#include "kernels/cpu/row_vectors.hpp"
#include "kernels/kda.hpp"
#include "kernels/train/activation_grad.hpp"
#include "kernels/train/kda_head_grad.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr float kL2Eps = 1e-6f;

// Calls fn(offset) for each vector of d channels.
template <class Fn>
KERNEL_FN void for_channels(size_t d, const Fn& fn) {
  for (size_t i = 0; i < d; i += kWidth) fn(i);
}

KERNEL_FN float dot_channels(const float* a, const float* b, size_t d) {
  LaneSum sum;
  for (size_t i = 0; i < d; i += 16) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kPer16; ++j) {
      const size_t at = i + j * kWidth;
      sum.part[j] = multiply_add(Lanes::load(a + at), Lanes::load(b + at), sum.part[j]);
    }
  }
  return fold(sum);
}

// Rows lie far apart, where no hardware prefetch follows: a head's part of them is asked for a few
// tokens ahead.
constexpr size_t kTokensAhead = 6;

template <class Real>
KERNEL_FN void fetch(const KdaHeadGrad& h, const Grid<Real>& rows, size_t t, size_t column) {
  const float* const from = rows.row(h.sequence.begin + t) + column + h.column();
  for (size_t i = 0; i < h.d; i += 16) __builtin_prefetch(from + i);
  __builtin_prefetch(from + h.d - 1);  // rows need not begin with a cache line
}
template <class Real>
KERNEL_FN void fetch_token(const KdaHeadGrad& h, const Grid<Real>& rows, size_t t, size_t column) {
  if (t + kTokensAhead < h.sequence.count) fetch(h, rows, t + kTokensAhead, column);
}

KERNEL_FN void load_conv_taps(const KdaHeadGrad& h) {
  const size_t count = h.args.conv_width;
  for (size_t part = 0; part < 3; ++part) {
    const float* const conv = h.args.conv + (part * h.width() + h.column()) * count;
    for (size_t j = 0; j < count; ++j) {
      for (size_t i = 0; i < h.d; ++i) h.taps[(part * count + j) * h.d + i] = conv[i * count + j];
    }
  }
}

// SiLU of one token's convolution and its slope there.
template <size_t W>
KERNEL_FN void convolve_token(const KdaHeadGrad& h, size_t part, size_t t, float* out) {
  const float* input[W];
  for (size_t j = 0; j < W; ++j) input[j] = h.input(part, t, j);
  const float* const taps = h.taps + part * W * h.d;
  float* const slope = h.slope[part] + t * h.d;
  for_channels(h.d, [&](size_t i) KERNEL_LAMBDA {
    Lanes sum = Lanes::zero();
#pragma GCC unroll 4
    for (size_t j = 0; j < W; ++j)
      sum = multiply_add(Lanes::load(taps + j * h.d + i), Lanes::load(input[j] + i), sum);
    const auto sigmoid = sigmoid_pair(sum);
    (sum * sigmoid.s).store(out + i);
    silu_slope(sum, sigmoid).store(slope + i);
  });
}

// x <- x scale / |x|; returns 1 / |x|.
KERNEL_FN float l2_normalise(float* x, size_t d, float scale) {
  const float inverse = inverse_l2(Lanes(dot_channels(x, x, d)), kL2Eps).first();
  const Lanes factor(inverse * scale);
  for_channels(d, [&](size_t i) KERNEL_LAMBDA { (Lanes::load(x + i) * factor).store(x + i); });
  return inverse;
}

template <size_t W>
HWY_NOINLINE void prepare_tokens(const KdaHeadGrad& h) {
  const float q_scale = math::inverse_sqrt(Lanes(static_cast<float>(h.d))).first();
  const float* const dt = h.args.dt_bias + h.column();
  for (size_t t = 0; t < h.sequence.count; ++t) {
    const size_t at = t * h.d, row = h.sequence.begin + t;
    for (size_t part = 0; part < 3; ++part) fetch_token(h, h.args.qkv, t, part * h.width());
    fetch_token(h, h.args.decay, t, 0);
    convolve_token<W>(h, 0, t, h.q + at);
    convolve_token<W>(h, 1, t, h.k + at);
    convolve_token<W>(h, 2, t, h.v + at);
    h.q_inverse[t] = l2_normalise(h.q + at, h.d, q_scale);
    h.k_inverse[t] = l2_normalise(h.k + at, h.d, 1.0f);
    h.beta[t] = math::sigmoid(Lanes(h.args.beta.row(row)[h.head])).first();
    const float* const f = h.args.decay.row(row) + h.column();
    for_channels(h.d, [&](size_t i) KERNEL_LAMBDA {
      kda_log_decay(Lanes::load(f + i), Lanes::load(dt + i), Lanes(h.rate), h.args.has_lower_bound,
                    h.args.lower_bound)
          .store(h.log_decay + at + i);
    });
  }
  const size_t end = h.sequence.count * h.d, padding = h.chunks() * kKdaGradChunk * h.d - end;
  for (float* const rows : {h.q, h.k, h.v, h.log_decay, h.dout})
    std::fill_n(rows + end, padding, 0.0f);
  std::fill(h.beta + h.sequence.count, h.beta + h.chunks() * kKdaGradChunk, 0.0f);
}

// Through the gated norm of one token, y = RMSNorm(o) sigmoid(z): dgate, dnorm and dout from o.
KERNEL_FN void read_out_grad(const KdaHeadGrad& h, size_t t, const float* o) {
  const size_t row = h.sequence.begin + t, d = h.d;
  const float* const dy = h.args.dout.row(row) + h.column();
  const float* const gate = h.args.gate.row(row) + h.column();
  float *const dgate = h.args.dgate.row(row) + h.column(), *const dout = h.dout + t * d;
  const float* const weight = h.args.norm;
  float* const dnorm = h.args.dnorm;
  fetch_token(h, h.args.dout, t, 0);
  fetch_token(h, h.args.gate, t, 0);
  fetch_token(h, h.args.dgate, t, 0);
  const Lanes inverse =
      inverse_rms(Lanes(dot_channels(o, o, d)), static_cast<float>(d), h.args.norm_eps);
  LaneSum dot;
  for_lanes(d, [&](size_t i, size_t, size_t j) KERNEL_LAMBDA {
    const auto sigmoid = sigmoid_pair(Lanes::load(gate + i));
    const Lanes dnormed = Lanes::load(dy + i) * sigmoid.s;
    const Lanes value = Lanes::load(o + i), unit = value * inverse;
    const Lanes weighted = dnormed * Lanes::load(weight + i);
    (weighted * unit * sigmoid.rest).store(dgate + i);
    weighted.store(dout + i);
    dot.part[j] = multiply_add(weighted, value, dot.part[j]);
    if (dnorm != nullptr) multiply_add(dnormed, unit, Lanes::load(dnorm + i)).store(dnorm + i);
  });
  const Lanes along = Lanes(-fold(dot) / static_cast<float>(d)) * inverse * inverse;
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    const Lanes weighted = Lanes::load(dout + i);
    (inverse * multiply_add(along, Lanes::load(o + i), weighted)).store(dout + i);
  });
}

// d(x / |x|) -> dx, times the slope of the SiLU before it. x is the normalised row times `scale`.
KERNEL_FN void l2_grad(const float* x, float inverse, float scale, const float* dx, float* slope,
                       size_t d) {
  const Lanes along(dot_channels(x, dx, d) / (scale * scale)), factor(inverse * scale);
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    const Lanes across = Lanes::load(dx + i) - Lanes::load(x + i) * along;
    (across * factor * Lanes::load(slope + i)).store(slope + i);
  });
}

// ddecay, ddt_bias and da_log from the gradient of the log-decay.
KERNEL_FN void decay_grad(const KdaHeadGrad& h, size_t t, const float* dg) {
  const size_t row = h.sequence.begin + t, at = h.column();
  const float *const f = h.args.decay.row(row) + at, *const dt = h.args.dt_bias + at;
  const float* const g = h.log_decay + t * h.d;
  float* const ddecay = h.args.ddecay.row(row) + at;
  const bool bounded = h.args.has_lower_bound;
  const Lanes rate(h.rate), shrink(bounded ? -1.0f / h.args.lower_bound : 0.0f);
  Lanes dlog_rate = Lanes::zero();
  for_channels(h.d, [&](size_t i) KERNEL_LAMBDA {
    const Lanes log_decay = Lanes::load(g + i), x = Lanes::load(f + i) + Lanes::load(dt + i);
    const Lanes scaled = Lanes::load(dg + i) * log_decay;
    Lanes dx;
    if (bounded) {
      dx = scaled * multiply_add(log_decay, shrink, Lanes(1.0f)) * rate;
      dlog_rate = multiply_add(dx, x, dlog_rate);
    } else {
      dx = (Lanes::zero() - Lanes::load(dg + i)) * rate * math::sigmoid(x);
      dlog_rate = dlog_rate + scaled;
    }
    dx.store(ddecay + i);
    if (h.args.ddt_bias == nullptr) return;
    float* const to = h.args.ddt_bias + at + i;
    (Lanes::load(to) + dx).store(to);
  });
  if (h.args.da_log == nullptr) return;
  float lane[kWidth];
  dlog_rate.store(lane);
  float sum = 0;
  for (const float value : lane) sum += value;
  h.args.da_log[h.head] += sum;
}

// The gradients of a chunk's tokens, back to their convolutions and gates.
void finish_chunk(const KdaHeadGrad& h, size_t chunk) {
  const float q_scale = math::inverse_sqrt(Lanes(static_cast<float>(h.d))).first();
  for (size_t r = 0; r < h.tokens(chunk); ++r) {
    const size_t t = chunk * kKdaGradChunk + r, at = t * h.d;
    if (chunk != 0) {
      fetch(h, h.args.decay, t - kKdaGradChunk, 0);
      fetch(h, h.args.ddecay, t - kKdaGradChunk, 0);
    }
    l2_grad(h.q + at, h.q_inverse[t], q_scale, h.dq + r * h.d, h.slope[0] + at, h.d);
    l2_grad(h.k + at, h.k_inverse[t], 1.0f, h.dk + r * h.d, h.slope[1] + at, h.d);
    for_channels(h.d, [&](size_t i) KERNEL_LAMBDA {
      float* const slope = h.slope[2] + at + i;
      (Lanes::load(h.dv + r * h.d + i) * Lanes::load(slope)).store(slope);
    });
    decay_grad(h, t, h.dg + r * h.d);
    if (h.args.dbeta.data == nullptr) continue;
    const float beta = h.beta[t];
    h.args.dbeta.row(h.sequence.begin + t)[h.head] = h.dbeta[r] * beta * (1.0f - beta);
  }
}

constexpr size_t kConvTokens = 4;  // of a block: what they share is read once

// Gradients of the convolution's input for a block of tokens, and of its taps.
template <size_t W, bool kTaps>
KERNEL_FN void convolution_block(const KdaHeadGrad& h, size_t part, size_t first) {
  constexpr size_t kSpan = kConvTokens + W - 1;
  const size_t d = h.d, count = h.sequence.count;
  const float* const taps = h.taps + part * W * d;
  float* const dtaps = h.dtaps + part * W * d;
  const float *sums[kSpan], *input[kSpan];  // from the first token on; up to the last token
  for (size_t i = 0; i < kSpan; ++i) {
    sums[i] = first + i < count ? h.slope[part] + (first + i) * d : h.zeros;
    input[i] = first + i < count + W - 1 ? h.input(part, first + i, 0) : h.zeros;
  }
  float* to[kConvTokens];
  for (size_t t = 0; t < kConvTokens; ++t)
    to[t] = h.args.dqkv.row(h.sequence.begin + std::min(first + t, count - 1)) + part * h.width() +
            h.column();
  const size_t tokens = std::min(kConvTokens, count - first);
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    Lanes dc[kSpan], tap[W];
#pragma GCC unroll 8
    for (size_t s = 0; s < kSpan; ++s) dc[s] = Lanes::load(sums[s] + i);
#pragma GCC unroll 4
    for (size_t j = 0; j < W; ++j) tap[j] = Lanes::load(taps + j * d + i);
#pragma GCC unroll 4
    for (size_t t = 0; t < kConvTokens; ++t) {
      Lanes sum = Lanes::zero();
#pragma GCC unroll 4
      for (size_t j = 0; j < W; ++j) sum = multiply_add(tap[j], dc[t + W - 1 - j], sum);
      if (t < tokens) sum.store(to[t] + i);
    }
    if (!kTaps) return;
#pragma GCC unroll 4
    for (size_t j = 0; j < W; ++j) {
      Lanes sum = Lanes::load(dtaps + j * d + i);
#pragma GCC unroll 4
      for (size_t t = 0; t < kConvTokens; ++t)
        sum = multiply_add(dc[t], Lanes::load(input[t + j] + i), sum);
      sum.store(dtaps + j * d + i);
    }
  });
}

template <size_t W, bool kTaps>
KERNEL_FN void convolution_blocks(const KdaHeadGrad& h) {
  for (size_t first = 0; first < h.sequence.count; first += kConvTokens) {
    for (size_t part = 0; part < 3; ++part) {
      for (size_t t = first; t < first + kConvTokens; ++t) {
        fetch_token(h, h.args.qkv, t, part * h.width());
        fetch_token(h, h.args.dqkv, t, part * h.width());
      }
      convolution_block<W, kTaps>(h, part, first);
    }
  }
}

// Gradients of the convolution's input, and of its taps where they are not frozen.
template <size_t W>
HWY_NOINLINE void convolution_grad(const KdaHeadGrad& h) {
  if (h.args.dconv == nullptr) return convolution_blocks<W, false>(h);
  std::fill_n(h.dtaps, 3 * W * h.d, 0.0f);
  convolution_blocks<W, true>(h);
  for (size_t part = 0; part < 3; ++part) {
    float* const dconv = h.args.dconv + (part * h.width() + h.column()) * W;
    for (size_t j = 0; j < W; ++j) {
      for (size_t i = 0; i < h.d; ++i) dconv[i * W + j] += h.dtaps[(part * W + j) * h.d + i];
    }
  }
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
