#include "kernels/cpu/interleave.hpp"

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/interleave.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using QuadTag = hn::FixedTag<float, 4>;
using PairTag = hn::FixedTag<float, 2>;
using Quad = hn::Vec<QuadTag>;
using LongTag = hn::FixedTag<uint64_t, 2>;

KERNEL_FN Quad lower_pairs(Quad a, Quad b) {  // a0 a1 b0 b1
  return hn::BitCast(QuadTag(), hn::InterleaveLower(LongTag(), hn::BitCast(LongTag(), a),
                                                    hn::BitCast(LongTag(), b)));
}
KERNEL_FN Quad upper_pairs(Quad a, Quad b) {  // a2 a3 b2 b3
  return hn::BitCast(QuadTag(), hn::InterleaveUpper(LongTag(), hn::BitCast(LongTag(), a),
                                                    hn::BitCast(LongTag(), b)));
}

// Inputs k .. k+3 of four rows; `step` floats between the inputs of the target.
KERNEL_FN void four_rows(const float* const* row, size_t k, float* target, size_t step) {
  const QuadTag tag;
  const Quad a = hn::LoadU(tag, row[0] + k), b = hn::LoadU(tag, row[1] + k);
  const Quad c = hn::LoadU(tag, row[2] + k), d = hn::LoadU(tag, row[3] + k);
  const Quad ab01 = hn::InterleaveLower(tag, a, b), ab23 = hn::InterleaveUpper(tag, a, b);
  const Quad cd01 = hn::InterleaveLower(tag, c, d), cd23 = hn::InterleaveUpper(tag, c, d);
  hn::StoreU(lower_pairs(ab01, cd01), tag, target);
  hn::StoreU(upper_pairs(ab01, cd01), tag, target + step);
  hn::StoreU(lower_pairs(ab23, cd23), tag, target + 2 * step);
  hn::StoreU(upper_pairs(ab23, cd23), tag, target + 3 * step);
}

KERNEL_FN void two_rows(const float* const* row, size_t k, float* target, size_t step) {
  const QuadTag tag;
  const Quad a = hn::LoadU(tag, row[0] + k), b = hn::LoadU(tag, row[1] + k);
  const Quad ab01 = hn::InterleaveLower(tag, a, b), ab23 = hn::InterleaveUpper(tag, a, b);
  hn::StoreU(hn::LowerHalf(ab01), PairTag(), target);
  hn::StoreU(hn::UpperHalf(PairTag(), ab01), PairTag(), target + step);
  hn::StoreU(hn::LowerHalf(ab23), PairTag(), target + 2 * step);
  hn::StoreU(hn::UpperHalf(PairTag(), ab23), PairTag(), target + 3 * step);
}

void interleave_rows_target(const float* const* row, size_t count, size_t width, float* target) {
  with_rows(count, [&]<int R>() {
    constexpr size_t kRows = R, kPairs = kRows / 4 * 4, kLast = kRows - 1;
    size_t k = 0;
    for (; k + 4 <= width; k += 4) {
      float* to = target + k * kRows;
      if constexpr (kRows >= 4) four_rows(row, k, to, kRows);
      if constexpr (kRows % 4 >= 2) two_rows(row + kPairs, k, to + kPairs, kRows);
      if constexpr (kRows % 2 == 1) {
        for (size_t i = 0; i < 4; ++i) to[i * kRows + kLast] = row[kLast][k + i];
      }
    }
    for (; k < width; ++k) {
      for (size_t r = 0; r < kRows; ++r) target[k * kRows + r] = row[r][k];
    }
  });
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(interleave_rows_target);

void cpu::interleave_rows(const float* const* row, size_t count, size_t width, float* target) {
  HWY_DYNAMIC_DISPATCH(interleave_rows_target)(row, count, width, target);
}
}  // namespace kernels
#endif
