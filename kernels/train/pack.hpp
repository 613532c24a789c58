// Packing for products: a panel holds W rows of an operand, k first: panel[k * W + row]. Included
// once per SIMD target.
#if defined(KERNELS_TRAIN_PACK_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_PACK_HPP_
#else
#define KERNELS_TRAIN_PACK_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN

// Columns at, ..., at + 3 of kWidth rows.
template <size_t W = kWidth>
KERNEL_FN void load_columns(const float* const (&row)[W], size_t at, Lanes (&column)[4]) {
  const hn::CappedTag<float, W> d;
  Lanes v[4];
#pragma GCC unroll 4
  for (size_t r = 0; r < 4; ++r) {
    if constexpr (W == 8) {
      const hn::Half<decltype(d)> half;
      v[r] = hn::Combine(d, hn::LoadU(half, row[r + 4] + at), hn::LoadU(half, row[r] + at));
    } else {
      v[r] = hn::LoadU(d, row[r] + at);
    }
  }
  const auto low02 = hn::InterleaveLower(d, v[0].v, v[2].v);
  const auto low13 = hn::InterleaveLower(d, v[1].v, v[3].v);
  const auto high02 = hn::InterleaveUpper(d, v[0].v, v[2].v);
  const auto high13 = hn::InterleaveUpper(d, v[1].v, v[3].v);
  column[0] = hn::InterleaveLower(d, low02, low13);
  column[1] = hn::InterleaveUpper(d, low02, low13);
  column[2] = hn::InterleaveLower(d, high02, high13);
  column[3] = hn::InterleaveUpper(d, high02, high13);
}

// A panel of W rows that lie `ld` apart with k contiguous. A panel of 6 is written past its end:
// the next k overwrites that, and what follows the panel is written later.
template <size_t W>
KERNEL_FN void pack_rows(const float* from, size_t ld, size_t k, float* panel) {
  constexpr size_t kGroups = (W + kWidth - 1) / kWidth;
  const float* row[kGroups][kWidth];
  for (size_t g = 0; g < kGroups; ++g)
    for (size_t r = 0; r < kWidth; ++r) row[g][r] = from + std::min(g * kWidth + r, W - 1) * ld;
  size_t at = 0;
  for (; at + 4 <= k; at += 4) {
    Lanes column[kGroups][4];
#pragma GCC unroll 4
    for (size_t g = 0; g < kGroups; ++g) load_columns(row[g], at, column[g]);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (size_t g = 0; g < kGroups; ++g) column[g][i].store(panel + (at + i) * W + g * kWidth);
    }
  }
  for (; at < k; ++at) {
    for (size_t r = 0; r < W; ++r) panel[at * W + r] = row[r / kWidth][r % kWidth][at];
  }
}

// The same of an operand whose rows are contiguous, k lying `ld` apart: full panels of W rows,
// `panel_step` floats from one to the next, a few side by side. Of each k as many cache lines are
// read in one piece, and asked for a few k ahead: their neighbours lie far away, often at a
// distance that fills one set of a cache. `readable` (>= rows) floats of each k may be read.
template <size_t W>
KERNEL_FN void pack_columns(const float* from, size_t ld, size_t rows, size_t readable, size_t k,
                            float* panels, size_t panel_step) {
  constexpr size_t kVectors = (W + kWidth - 1) / kWidth, kTogether = (72 / W) * W, kAhead = 8;
  for (size_t first = 0; first + W <= rows; first += kTogether) {
    const size_t full = std::min(kTogether, rows - first) / W * W;
    for (size_t at = 0; at < k; ++at) {
      const float* const source = from + at * ld + first;
      float* to = panels + first / W * panel_step + at * W;
      if (at + kAhead < k) {
        for (size_t r = 0; r < full; r += 16) __builtin_prefetch(source + kAhead * ld + r);
      }
      size_t r = 0;
      for (; r < full && first + r + kVectors * kWidth <= readable; r += W, to += panel_step) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v)
          Lanes::load(source + r + v * kWidth).store(to + v * kWidth);
      }
      for (; r < full; r += W, to += panel_step) {
        for (size_t i = 0; i < W; ++i) to[i] = source[r + i];
      }
    }
  }
}

// [rows, columns] -> [columns, rows], both multiples of kWidth.
KERNEL_FN void transpose(const float* from, size_t ld, size_t rows, size_t columns, float* to,
                         size_t to_ld) {
  for (size_t r = 0; r < rows; r += kWidth) {
    const float* row[kWidth];
    for (size_t i = 0; i < kWidth; ++i) row[i] = from + (r + i) * ld;
    for (size_t c = 0; c < columns; c += 4) {
      Lanes column[4];
      load_columns(row, c, column);
      for (size_t i = 0; i < 4; ++i) column[i].store(to + (c + i) * to_ld + r);
    }
  }
}

KERNEL_NAMESPACE_END
#endif
