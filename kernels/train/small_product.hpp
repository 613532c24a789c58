// Products of matrices that lie in L1, without packing: c[m, n] = a b or c += a b, n a multiple of
// 16. Included once per SIMD target.
#if defined(KERNELS_TRAIN_SMALL_PRODUCT_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_SMALL_PRODUCT_HPP_
#else
#define KERNELS_TRAIN_SMALL_PRODUCT_HPP_
#endif

#include "kernels/cpu/tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

enum class Left { kRows, kTransposed };  // a is stored [m, k], or [k, m]
enum class Result { kStore, kAdd };

template <int R, Left kLeft, Result kResult>
KERNEL_FN void small_tile(size_t k, const float* a, size_t a_ld, const float* b, size_t b_ld,
                          float* c, size_t c_ld) {
  Tile<R, 1> tile;
  tile.clear();
#pragma GCC unroll 2
  for (size_t i = 0; i < k; ++i) {
    Vector values[kPer16];
    PanelRow<DType::kF32>::load(b + i * b_ld, values);
#pragma GCC unroll 8
    for (size_t r = 0; r < R; ++r) {
      const Vector value =
          hn::Set(FloatTag(), kLeft == Left::kRows ? a[r * a_ld + i] : a[i * a_ld + r]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kPer16; ++v)
        tile.sum[r][v] = hn::MulAdd(values[v], value, tile.sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kPer16; ++v) {
      float* const to = c + r * c_ld + v * kWidth;
      const Lanes sum = tile.sum[r][v];
      (kResult == Result::kAdd ? Lanes::load(to) + sum : sum).store(to);
    }
  }
}

template <Left kLeft, Result kResult>
HWY_NOINLINE void small_product(size_t m, size_t n, size_t k, const float* a, size_t a_ld,
                                const float* b, size_t b_ld, float* c, size_t c_ld) {
  for (size_t j = 0; j < n; j += 16) {
    for (size_t i = 0; i < m;) {
      const float* const rows = a + (kLeft == Left::kRows ? i * a_ld : i);
      float* const to = c + i * c_ld + j;
      // 8 left are 4 and 4: two rows alone have too few chains.
      if (m - i >= 6 && m - i != 8) {
        small_tile<6, kLeft, kResult>(k, rows, a_ld, b + j, b_ld, to, c_ld);
        i += 6;
      } else if (m - i >= 4) {
        small_tile<4, kLeft, kResult>(k, rows, a_ld, b + j, b_ld, to, c_ld);
        i += 4;
      } else {
        small_tile<2, kLeft, kResult>(k, rows, a_ld, b + j, b_ld, to, c_ld);
        i += 2;
      }
    }
  }
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
