// Register tiles of MLA attention: scores of a group of queries with a few rows, and the weighted
// sum of rows for a few queries. Rows of a block lie `stride` floats apart. Included once per SIMD
// target.
#if defined(KERNELS_CPU_MLA_TILE_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_MLA_TILE_HPP_
#else
#define KERNELS_CPU_MLA_TILE_HPP_
#endif

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/attention.hpp"

KERNEL_NAMESPACE_BEGIN

// Memory to fetch between the arithmetic, `step` bytes further each turn.
struct Fetch {
  const std::byte* at;
  size_t step;

  KERNEL_FN void one() {
    __builtin_prefetch(at, 0, 2);
    at += step;
  }
};

// score[t][V * kWidth] (+)= queries . rows[t] over `count` dimensions; a lane owns a query, so
// every score is one chain. The queries of a group lie side by side: query[dimension][V * kWidth].
template <int V, int T>
KERNEL_FN void score_tile(const float* query, const float* rows, size_t stride, size_t count,
                          float* score, bool first, Fetch fetch) {
  Lanes sum[T][V];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[t][v] = Lanes::zero();
  }
  // Rows are addressed from every third one, so that few pointers cover them all.
  constexpr int kBases = (T + 2) / 3;
  const float* base[kBases];
#pragma GCC unroll 16
  for (int b = 0; b < kBases; ++b) base[b] = rows + static_cast<size_t>(3 * b) * stride;
  const size_t twice = 2 * stride;
  const auto step = [&](size_t at) KERNEL_LAMBDA {
    Lanes q[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) q[v] = Lanes::load(query + static_cast<size_t>(v) * kWidth);
    query += V * kWidth;
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const float* row = base[t / 3] + at;
      const Lanes x(t % 3 == 0 ? row[0] : t % 3 == 1 ? row[stride] : row[twice]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[t][v] = multiply_add(q[v], x, sum[t][v]);
    }
  };
  size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    fetch.one();
    step(0);
    step(1);
    step(2);
    step(3);
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b) base[b] += 4;
  }
  for (; k < count; ++k) {
    step(0);
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b) base[b] += 1;
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      float* to = score + (static_cast<size_t>(t) * V + static_cast<size_t>(v)) * kWidth;
      (first ? sum[t][v] : Lanes::load(to) + sum[t][v]).store(to);
    }
  }
}

// out[q] <- merge(out[q], sum over t of weight[t][q] rows[t]) for Q queries and V vectors of
// dimensions.
template <int Q, int V>
KERNEL_FN void weigh_tile(const float* weight, size_t weight_step, const float* rows, size_t stride,
                          size_t count, const float* old_factor, const float* block_factor,
                          float* out, size_t out_step, Fetch fetch) {
  Lanes sum[Q][V];
#pragma GCC unroll 16
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[q][v] = Lanes::zero();
  }
  for (size_t t = 0; t < count; ++t) {
    fetch.one();
    Lanes value[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) value[v] = Lanes::load(rows + static_cast<size_t>(v) * kWidth);
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
      const Lanes w(weight[q]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[q][v] = multiply_add(w, value[v], sum[q][v]);
    }
    weight += weight_step;
    rows += stride;
  }
#pragma GCC unroll 16
  for (int q = 0; q < Q; ++q) {
    const Lanes old(old_factor[q]), block(block_factor[q]);
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      float* to = out + static_cast<size_t>(q) * out_step + static_cast<size_t>(v) * kWidth;
      merge(Lanes::load(to), sum[q][v], old, block).store(to);
    }
  }
}

KERNEL_NAMESPACE_END
#endif
