// Attention-residual mix: scores from normalised rows, the sum from raw rows.
#if defined(KERNELS_RESIDUAL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_RESIDUAL_HPP_
#else
#define KERNELS_RESIDUAL_HPP_
#endif

#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN

// A source's score from its dot product with the gain: that of the normalised row.
template <class F>
KERNEL_FN F residual_score(F dot, F inverse) {
  return dot * inverse;
}

// One source's part of an output element, sources in push order.
template <class F>
KERNEL_FN F residual_sum(F weight, F value, F sum) {
  return multiply_add(weight, value, sum);
}

KERNEL_NAMESPACE_END
#endif
