// Loops over the vectors of one row of any width. Included once per SIMD target.
#if defined(KERNELS_CPU_ROW_VECTORS_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_ROW_VECTORS_HPP_
#else
#define KERNELS_CPU_ROW_VECTORS_HPP_
#endif

#include <algorithm>

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN

// Calls fn(offset, count) for each vector of a row; count < kWidth only at the end.
template <class Fn>
KERNEL_FN void for_vectors(size_t width, const Fn& fn) {
  size_t i = 0;
  for (; i + kWidth <= width; i += kWidth) fn(i, kWidth);
  if (i < width) fn(i, width - i);
}

// Calls step(offset, count, lane group) for the vectors of a row in ascending order; vectors of one
// group go to the same lanes of a LaneSum. Full vectors have a constant count.
template <class Step>
KERNEL_FN void for_lanes(size_t width, const Step& step) {
  size_t i = 0;
  for (; i + 16 <= width; i += 16) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kPer16; ++j) step(i + j * kWidth, kWidth, j);
  }
#pragma GCC unroll 4
  for (size_t j = 0; j < kPer16; ++j) {
    const size_t at = i + j * kWidth;
    if (at < width) step(at, std::min(kWidth, width - at), j);
  }
}

// 8 lane sums, in one vector or two, to 4.
template <size_t N>
KERNEL_FN auto fold_to_four(const Lanes (&half)[N]) {
  const hn::CappedTag<float, 4> four;
  if constexpr (N == 1) {
    return hn::Add(hn::LowerHalf(four, half[0].v), hn::UpperHalf(four, half[0].v));
  } else {
    return hn::Add(half[0].v, half[1].v);
  }
}

// fold_lanes in registers: the same additions.
KERNEL_FN float fold(const LaneSum& sum) {
  Lanes half[kPer16 / 2];
#pragma GCC unroll 4
  for (size_t i = 0; i < kPer16 / 2; ++i) half[i] = sum.part[i] + sum.part[i + kPer16 / 2];
  auto v = fold_to_four(half);
  v = hn::Add(v, hn::Shuffle1032(v));
  v = hn::Add(v, hn::Shuffle2301(v));
  return hn::GetLane(v);
}

KERNEL_FN Lanes inverse_rms_of(const LaneSum& squares, size_t width, float eps) {
  return inverse_rms(Lanes(fold(squares)), static_cast<float>(width), eps);
}

KERNEL_NAMESPACE_END
#endif
