// Row norms. A sum over a row runs in 16 lanes (lane j takes elements j, j + 16, ... in ascending
// order, one FMA chain from +0); the lanes then fold 8, 4, 2, 1. So no result depends on a vector
// width.
#if defined(KERNELS_NORM_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_NORM_HPP_
#else
#define KERNELS_NORM_HPP_
#endif

#include "kernels/math.hpp"

KERNEL_NAMESPACE_BEGIN

// Folds 16 lane sums into one; `lane` is overwritten.
KERNEL_FN float fold_lanes(float* lane /* [16] */) {
  for (int half = 8; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
  }
  return lane[0];
}

// RMSNorm factor of a row from its sum of squares.
template <class F>
KERNEL_FN F inverse_rms(F sum_of_squares, float width, float eps) {
  return math::inverse_sqrt(sum_of_squares / F(width) + F(eps));
}

// L2 factor; eps is added to the sum, not to the mean.
template <class F>
KERNEL_FN F inverse_l2(F sum_of_squares, float eps) {
  return math::inverse_sqrt(sum_of_squares + F(eps));
}

template <class F>
KERNEL_FN F rms_scale(F x, F inverse, F weight) {
  return x * inverse * weight;
}

KERNEL_NAMESPACE_END
#endif
