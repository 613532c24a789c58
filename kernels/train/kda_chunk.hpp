// The KDA recurrence in chunks of 16 tokens, forward and in reverse, as small products (Kimi Linear
// report; the reverse by hand from it). Decays within a chunk are factored through its middle, so a
// log-decay must stay above kChunkedLowerBound: then no factor leaves the floats.
//
// With L the sum of log-decays in the chunk, A = e^(L - L_mid), qa = q A, ka = k A, kb = k / A:
//   P = tril(qa kb^T)     M = stril(ka kb^T)
//   Qbar = e^L_mid qa     Kbar = e^L_mid ka     Khat = e^(L_end - L_mid) kb
//   W = V - Kbar S - M U, U = beta W            O = Qbar S + P U       S' = e^L_end S + Khat^T U
// Included once per SIMD target.
#if defined(KERNELS_TRAIN_KDA_CHUNK_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_KDA_CHUNK_HPP_
#else
#define KERNELS_TRAIN_KDA_CHUNK_HPP_
#endif

#include "kernels/train/kda_tokens.hpp"
#include "kernels/train/pack.hpp"
#include "kernels/train/small_product.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr size_t kC = kKdaGradChunk;
constexpr size_t kMiddle = kC / 2 - 1;  // the token whose L is L_mid

// KdaHeadGrad::room; rows are tokens of the chunk.
struct ChunkRoom {
  float* qka;      // [32][d] qa over ka, then Qbar over Kbar
  float* kb;       // [16][d]
  float* khat;     // [16][d]
  float* u;        // [16][d]
  float* dod;      // [32][d] dout over dE
  float* wide;     // [32][d] results
  float* turned;   // [d][48] channels in rows: dout, dE, U
  float* dturned;  // [d][48] gradients of Qbar, -Kbar, Khat
  float* dbar;     // [48][d] the same, tokens in rows
  float* dpairs;   // [32][16]
  float* dend;     // [d]

  ChunkRoom(float* room, size_t d)
      : qka(room),
        kb(qka + 32 * d),
        khat(kb + 16 * d),
        u(khat + 16 * d),
        dod(u + 16 * d),
        wide(dod + 32 * d),
        turned(wide + 32 * d),
        dturned(turned + 48 * d),
        dbar(dturned + 48 * d),
        dpairs(dbar + 48 * d),
        dend(dpairs + 512) {}
};

// to[rows, d] = from * factor, the factor of a channel being the same for all rows.
KERNEL_FN void scale_channels(const float* from, const float* factor, float* to, size_t rows,
                              size_t d) {
  for (size_t r = 0; r < rows; ++r) {
    for_channels(d, [&](size_t i) KERNEL_LAMBDA {
      (Lanes::load(from + r * d + i) * Lanes::load(factor + i)).store(to + r * d + i);
    });
  }
}

// state <- e^L_end state, keys in rows.
KERNEL_FN void decay_state(const float* bounds, const float* from, float* to, size_t d) {
  for (size_t i = 0; i < d; ++i) {
    const Lanes factor(bounds[i] * bounds[d + i]);
    for_channels(d, [&](size_t j) KERNEL_LAMBDA {
      (Lanes::load(from + i * d + j) * factor).store(to + i * d + j);
    });
  }
}

// Decays of a chunk: A, e^L_mid and e^(L_end - L_mid).
KERNEL_FN void chunk_decays(const KdaHeadGrad& h, size_t chunk) {
  const size_t d = h.d;
  const float* const g = h.log_decay + chunk * kC * d;
  float *const a = h.decay + chunk * kC * d, *const bounds = h.bounds + chunk * 2 * d;
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    Lanes sum[kC];
    sum[0] = Lanes::load(g + i);
#pragma GCC unroll 16
    for (size_t r = 1; r < kC; ++r) sum[r] = sum[r - 1] + Lanes::load(g + r * d + i);
    exponential(sum[kMiddle]).value().store(bounds + i);
    exponential(sum[kC - 1] - sum[kMiddle]).value().store(bounds + d + i);
    for (size_t r = 0; r < kC; ++r) exponential(sum[r] - sum[kMiddle]).value().store(a + r * d + i);
  });
}

// qa, ka and kb of a chunk.
KERNEL_FN void chunk_factors(const KdaHeadGrad& h, size_t chunk, const ChunkRoom& room) {
  const size_t d = h.d, first = chunk * kC * d;
  const float *const a = h.decay + first, *const q = h.q + first, *const k = h.k + first;
  for_channels(kC * d, [&](size_t i) KERNEL_LAMBDA {
    const Lanes factor = Lanes::load(a + i), key = Lanes::load(k + i);
    (Lanes::load(q + i) * factor).store(room.qka + i);
    (key * factor).store(room.qka + kC * d + i);
    (key / factor).store(room.kb + i);
  });
}

// P and M: what is above the diagonal (for M on it too) is zero, times `sign` below.
KERNEL_FN void mask_pairs(float* pairs, float sign) {
  for (size_t r = 0; r < kC; ++r) {
    std::fill(pairs + r * kC + r + 1, pairs + (r + 1) * kC, 0.0f);
    float* const below = pairs + (kC + r) * kC;
    std::fill(below + r, below + kC, 0.0f);
    for (size_t i = 0; i < r; ++i) below[i] *= sign;
  }
}

// W = V - KS - M U in place of V, U = beta W: token after token, V vectors of channels at once.
template <size_t V>
KERNEL_FN void solve_forward(const float* m, const float* beta, const float* ks, float* w, float* u,
                             size_t d) {
  for (size_t r = 0; r < kC; ++r) {
    Lanes sum[V];
#pragma GCC unroll 8
    for (size_t v = 0; v < V; ++v)
      sum[v] = Lanes::load(w + r * d + v * kWidth) - Lanes::load(ks + r * d + v * kWidth);
    for (size_t i = 0; i < r; ++i) {
      const Lanes factor(-m[r * kC + i]);
#pragma GCC unroll 8
      for (size_t v = 0; v < V; ++v)
        sum[v] = multiply_add(factor, Lanes::load(u + i * d + v * kWidth), sum[v]);
    }
    const Lanes scale(beta[r]);
#pragma GCC unroll 8
    for (size_t v = 0; v < V; ++v) {
      sum[v].store(w + r * d + v * kWidth);
      (sum[v] * scale).store(u + r * d + v * kWidth);
    }
  }
}

// Y = dU - (beta M)^T Y from the last token on, dE = beta Y; dbeta gets Y . W, lane by lane.
template <size_t V>
KERNEL_FN void solve_reverse(const float* m, const float* beta, const float* du, const float* w,
                             float* de, float* dbeta /* [16][kWidth] */, size_t d) {
  for (size_t r = kC; r-- > 0;) {
    Lanes sum[V];
#pragma GCC unroll 8
    for (size_t v = 0; v < V; ++v) sum[v] = Lanes::load(du + r * d + v * kWidth);
    for (size_t i = r + 1; i < kC; ++i) {
      const Lanes factor(-m[i * kC + r]);
#pragma GCC unroll 8
      for (size_t v = 0; v < V; ++v)
        sum[v] = multiply_add(factor, Lanes::load(de + i * d + v * kWidth), sum[v]);
    }
    const Lanes scale(beta[r]);
    Lanes dot = Lanes::load(dbeta + r * kWidth);
#pragma GCC unroll 8
    for (size_t v = 0; v < V; ++v) {
      dot = multiply_add(sum[v], Lanes::load(w + r * d + v * kWidth), dot);
      (sum[v] * scale).store(de + r * d + v * kWidth);
    }
    dot.store(dbeta + r * kWidth);
  }
}

void chunk_forward(const KdaHeadGrad& h) {
  const size_t d = h.d;
  const ChunkRoom room(h.room, d);
  std::fill_n(h.state, d * d, 0.0f);
  for (size_t chunk = 0; chunk < h.chunks(); ++chunk) {
    const float* const before = h.state + chunk * d * d;
    float *const after = h.state + (chunk + 1) * d * d, *const pairs =
                                                            h.pairs + chunk * 2 * kC * kC;
    const float* const bounds = h.bounds + chunk * 2 * d;
    float* const w = h.v + chunk * kC * d;
    chunk_decays(h, chunk);
    chunk_factors(h, chunk, room);
    transpose(room.kb, d, kC, d, room.turned, kC);
    small_product<Left::kRows, Result::kStore>(2 * kC, kC, d, room.qka, d, room.turned, kC, pairs,
                                               kC);
    mask_pairs(pairs, 1.0f);
    scale_channels(room.qka, bounds, room.qka, 2 * kC, d);
    small_product<Left::kRows, Result::kStore>(2 * kC, d, d, room.qka, d, before, d, room.wide, d);
    const float* const ks = room.wide + kC * d;
    for (size_t i = 0; i < d; i += 16)
      solve_forward<kPer16>(pairs + kC * kC, h.beta + chunk * kC, ks + i, w + i, room.u + i, d);
    small_product<Left::kRows, Result::kAdd>(kC, d, kC, pairs, kC, room.u, d, room.wide, d);
    for (size_t r = 0; r < h.tokens(chunk); ++r)
      read_out_grad(h, chunk * kC + r, room.wide + r * d);
    if (chunk + 1 == h.chunks()) break;
    scale_channels(room.kb, bounds + d, room.khat, kC, d);
    decay_state(bounds, before, after, d);
    small_product<Left::kTransposed, Result::kAdd>(d, d, kC, room.khat, d, room.u, d, after, d);
  }
}

// dE and dbeta of a chunk from the gradients of its outputs and of the state after it.
KERNEL_FN void write_grads(const KdaHeadGrad& h, size_t chunk, const ChunkRoom& room) {
  const size_t d = h.d;
  const float *const pairs = h.pairs + chunk * 2 * kC * kC, *const beta = h.beta + chunk * kC;
  const float* const w = h.v + chunk * kC * d;
  float *const du = room.wide, *const de = room.dod + kC * d;
  small_product<Left::kRows, Result::kStore>(kC, d, d, room.khat, d, h.dstate, d, du, d);
  small_product<Left::kTransposed, Result::kAdd>(kC, d, kC, pairs, kC, room.dod, d, du, d);
  float dbeta[kC * kWidth] = {};
  for (size_t i = 0; i < d; i += 16)
    solve_reverse<kPer16>(pairs + kC * kC, beta, du + i, w + i, de + i, dbeta, d);
  for (size_t r = 0; r < kC; ++r) {
    h.dbeta[r] = 0;
    for (size_t i = 0; i < kWidth; ++i) h.dbeta[r] += dbeta[r * kWidth + i];
  }
}

// Gradients of Qbar, Kbar, Khat and of the pairs; then of q, k and L, whose sum from a token on is
// that of its log-decay.
KERNEL_FN void token_grads(const KdaHeadGrad& h, size_t chunk, const ChunkRoom& room) {
  const size_t d = h.d, first = chunk * kC * d;
  const float* const before = h.state + chunk * d * d;
  transpose(room.dod, d, 2 * kC, d, room.turned, 3 * kC);
  transpose(room.u, d, kC, d, room.turned + 2 * kC, 3 * kC);
  small_product<Left::kRows, Result::kStore>(d, 2 * kC, d, before, d, room.turned, 3 * kC,
                                             room.dturned, 3 * kC);
  small_product<Left::kRows, Result::kStore>(d, kC, d, h.dstate, d, room.turned + 2 * kC, 3 * kC,
                                             room.dturned + 2 * kC, 3 * kC);
  transpose(room.dturned, 3 * kC, d, 3 * kC, room.dbar, d);
  small_product<Left::kRows, Result::kStore>(2 * kC, kC, d, room.dod, d, room.turned + 2 * kC,
                                             3 * kC, room.dpairs, kC);
  mask_pairs(room.dpairs, -1.0f);
  // What the pairs give to readers (q over k) and to writers.
  float* const written = h.dk;
  small_product<Left::kRows, Result::kStore>(2 * kC, d, kC, room.dpairs, kC, room.kb, d, room.wide,
                                             d);
  small_product<Left::kTransposed, Result::kStore>(kC, d, 2 * kC, room.dpairs, kC, room.qka, d,
                                                   written, d);
  const float *const a = h.decay + first, *const q = h.q + first, *const k = h.k + first;
  const float* const bounds = h.bounds + chunk * 2 * d;
  for_channels(d, [&](size_t i) KERNEL_LAMBDA {
    const Lanes mid = Lanes::load(bounds + i), end = Lanes::load(bounds + d + i);
    Lanes dg = Lanes::load(room.dend + i);
    for (size_t r = kC; r-- > 0;) {
      const size_t at = r * d + i;
      const Lanes factor = Lanes::load(a + at), key = Lanes::load(k + at);
      const Lanes dqbar = Lanes::load(room.dbar + at);
      const Lanes dkbar = Lanes::load(room.dbar + kC * d + at);  // of -Kbar
      const Lanes dkhat = Lanes::load(room.dbar + 2 * kC * d + at);
      const Lanes dq = factor * multiply_add(mid, dqbar, Lanes::load(room.wide + at));
      const Lanes read = factor * (Lanes::load(room.wide + kC * d + at) - mid * dkbar);
      const Lanes write = multiply_add(end, dkhat, Lanes::load(written + at)) / factor;
      dq.store(h.dq + at);
      (read + write).store(h.dk + at);
      dg = multiply_add(Lanes::load(q + at), dq, multiply_add(key, read - write, dg));
      dg.store(h.dg + at);
    }
  });
}

// dend = the row sums of dstate and the state after the chunk: what reaches L_end.
KERNEL_FN void end_grad(const KdaHeadGrad& h, size_t chunk, float* dend) {
  const size_t d = h.d;
  const float* const after = h.state + (chunk + 1) * d * d;
  for (size_t first = 0; first < d; first += kWidth) {
    float sums[kWidth][kWidth];
    const float* row[kWidth];
    for (size_t r = 0; r < kWidth; ++r) {
      const size_t at = (first + r) * d;
      Lanes sum = Lanes::zero();
      for_channels(d, [&](size_t j) KERNEL_LAMBDA {
        sum = multiply_add(Lanes::load(h.dstate + at + j), Lanes::load(after + at + j), sum);
      });
      sum.store(sums[r]);
      row[r] = sums[r];
    }
    Lanes total = Lanes::zero();
    for (size_t c = 0; c < kWidth; c += 4) {
      Lanes column[4];
      load_columns(row, c, column);
      total = total + ((column[0] + column[1]) + (column[2] + column[3]));
    }
    total.store(dend + first);
  }
}

void chunk_reverse(const KdaHeadGrad& h) {
  const size_t d = h.d;
  const ChunkRoom room(h.room, d);
  std::fill_n(h.dstate, d * d, 0.0f);
  std::fill_n(room.dend, d, 0.0f);
  for (size_t chunk = h.chunks(); chunk-- > 0;) {
    const float* const bounds = h.bounds + chunk * 2 * d;
    const float* const w = h.v + chunk * kC * d;
    if (chunk + 1 != h.chunks()) end_grad(h, chunk, room.dend);
    chunk_factors(h, chunk, room);
    scale_channels(room.kb, bounds + d, room.khat, kC, d);
    for (size_t r = 0; r < kC; ++r) {
      const Lanes beta(h.beta[chunk * kC + r]);
      for_channels(d, [&](size_t i) KERNEL_LAMBDA {
        (Lanes::load(w + r * d + i) * beta).store(room.u + r * d + i);
      });
    }
    std::copy_n(h.dout + chunk * kC * d, kC * d, room.dod);
    write_grads(h, chunk, room);
    std::copy_n(room.dod + kC * d, kC * d, h.dv);
    token_grads(h, chunk, room);
    finish_chunk(h, chunk);
    if (chunk == 0) break;
    // dS = e^L_end dS' + Qbar^T dout - Kbar^T dE
    decay_state(bounds, h.dstate, h.dstate, d);
    const size_t half = kC * d;
    for_channels(d, [&](size_t i) KERNEL_LAMBDA {
      const Lanes mid = Lanes::load(bounds + i), minus = Lanes::zero() - mid;
      for (size_t r = 0; r < kC; ++r) {
        float *const query = room.qka + r * d + i, *const key = query + half;
        (Lanes::load(query) * mid).store(query);
        (Lanes::load(key) * minus).store(key);
      }
    });
    small_product<Left::kTransposed, Result::kAdd>(d, d, 2 * kC, room.qka, d, room.dod, d, h.dstate,
                                                   d);
  }
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
