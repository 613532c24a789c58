// The KDA recurrence token by token, forward and in reverse: exact for any decay, the definition of
// the chunked form. States are kept before each chunk; those within it are computed again. Included
// once per SIMD target.
#if defined(KERNELS_TRAIN_KDA_SCAN_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_KDA_SCAN_HPP_
#else
#define KERNELS_TRAIN_KDA_SCAN_HPP_
#endif

#include "kernels/train/kda_tokens.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// y += a x
KERNEL_FN void add_scaled(Lanes a, const float* x, float* y, size_t d) {
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    multiply_add(a, Lanes::load(x + i), Lanes::load(y + i)).store(y + i);
  });
}

KERNEL_FN void exponentials_of(const float* x, float* y, size_t d) {
  for_channels(d, [&](size_t i) KERNEL_LAMBDA { math::exp(Lanes::load(x + i)).store(y + i); });
}

// decayed = e^g before; unread = v - decayed^T k.
KERNEL_FN void decay_token(const KdaHeadGrad& h, size_t t, const float* before, float* decayed,
                           float* unread) {
  const size_t d = h.d;
  float* const decay = h.room + kKdaGradChunk * d * d;
  exponentials_of(h.log_decay + t * d, decay, d);
  for (size_t i = 0; i < d; ++i) {
    const Lanes factor(decay[i]), key(-h.k[t * d + i]);
    const float* const from = before + i * d;
    float* const to = decayed + i * d;
    for_channels(d, [&](size_t j) KERNEL_LAMBDA {
      const Lanes s = Lanes::load(from + j) * factor;
      s.store(to + j);
      multiply_add(key, s, Lanes::load(unread + j)).store(unread + j);
    });
  }
}

// state += k (beta unread)^T, in place or from another.
KERNEL_FN void write_token(const KdaHeadGrad& h, size_t t, const float* decayed, float* state) {
  const size_t d = h.d;
  const float* const unread = h.v + t * d;
  for (size_t i = 0; i < d; ++i) {
    const Lanes factor(h.beta[t] * h.k[t * d + i]);
    for_channels(d, [&](size_t j) KERNEL_LAMBDA {
      multiply_add(factor, Lanes::load(unread + j), Lanes::load(decayed + i * d + j))
          .store(state + i * d + j);
    });
  }
}

void scan_forward(const KdaHeadGrad& h) {
  const size_t d = h.d;
  std::fill_n(h.state, d * d, 0.0f);
  float* const out = h.room + kKdaGradChunk * d * d + d;
  for (size_t chunk = 0; chunk < h.chunks(); ++chunk) {
    const float* before = h.state + chunk * d * d;
    float* const after = h.state + (chunk + 1) * d * d;
    for (size_t r = 0; r < h.tokens(chunk); ++r, before = after) {
      const size_t t = chunk * kKdaGradChunk + r;
      decay_token(h, t, before, after, h.v + t * d);
      write_token(h, t, after, after);
      std::fill_n(out, d, 0.0f);
      for (size_t i = 0; i < d; ++i) add_scaled(Lanes(h.q[t * d + i]), after + i * d, out, d);
      read_out_grad(h, t, out);
    }
  }
}

// One token in reverse; G is the gradient of the state after it, then of that before it.
KERNEL_FN void reverse_token(const KdaHeadGrad& h, size_t t, size_t r, const float* decayed) {
  const size_t d = h.d, at = t * d;
  const float beta = h.beta[t];
  const float *const unread = h.v + at, *const dout = h.dout + at;
  float *const dq = h.dq + r * d, *const dk = h.dk + r * d, *const dv = h.dv + r * d;
  float* const dg = h.dg + r * d;
  float* const decay = h.room + kKdaGradChunk * d * d;
  exponentials_of(h.log_decay + at, decay, d);
  // (S~ + beta k u^T) do, the read-out's part of the state's gradient, and what the write gets.
  const float read = beta * dot_channels(unread, dout, d);
  std::fill_n(dv, d, 0.0f);
  float dbeta = 0;
  for (size_t i = 0; i < d; ++i) {
    float* const g = h.dstate + i * d;
    dq[i] = dot_channels(decayed + i * d, dout, d) + read * h.k[at + i];
    add_scaled(Lanes(h.q[at + i]), dout, g, d);
    dk[i] = dot_channels(g, unread, d);
    dbeta += h.k[at + i] * dk[i];
    dk[i] *= beta;
    add_scaled(Lanes(beta * h.k[at + i]), g, dv, d);
  }
  h.dbeta[r] = dbeta;
  for (size_t i = 0; i < d; ++i) {
    float* const g = h.dstate + i * d;
    dk[i] -= dot_channels(decayed + i * d, dv, d);
    add_scaled(Lanes(-h.k[at + i]), dv, g, d);
    dg[i] = dot_channels(g, decayed + i * d, d);
    const Lanes factor(decay[i]);
    for_channels(d, [&](size_t j) KERNEL_LAMBDA { (Lanes::load(g + j) * factor).store(g + j); });
  }
}

void scan_reverse(const KdaHeadGrad& h) {
  const size_t d = h.d;
  std::fill_n(h.dstate, d * d, 0.0f);
  for (size_t chunk = h.chunks(); chunk-- > 0;) {
    // Decayed states of the chunk's tokens, computed again; the state after a token is only used
    // before the next one's decay, in that one's place.
    const float* before = h.state + chunk * d * d;
    for (size_t r = 0; r < h.tokens(chunk); ++r) {
      const size_t t = chunk * kKdaGradChunk + r;
      float* const decayed = h.room + r * d * d;
      if (r != 0) {
        write_token(h, t - 1, before, decayed);
        before = decayed;
      }
      float* const decay = h.room + kKdaGradChunk * d * d;
      exponentials_of(h.log_decay + t * d, decay, d);
      for (size_t i = 0; i < d; ++i) {
        const Lanes factor(decay[i]);
        for_channels(d, [&](size_t j) KERNEL_LAMBDA {
          (Lanes::load(before + i * d + j) * factor).store(decayed + i * d + j);
        });
      }
      before = decayed;
    }
    for (size_t r = h.tokens(chunk); r-- > 0;)
      reverse_token(h, chunk * kKdaGradChunk + r, r, h.room + r * d * d);
    finish_chunk(h, chunk);
  }
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
