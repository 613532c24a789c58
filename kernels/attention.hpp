// Online softmax over blocks of 64 absolute positions. A block yields a partial (max m, weight sum
// l, weighted sum o); partials merge in ascending order, whoever computed them.
#if defined(KERNELS_ATTENTION_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_ATTENTION_HPP_
#else
#define KERNELS_ATTENTION_HPP_
#endif

#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN

constexpr unsigned kAttentionBlock = 64;  // positions

// Merging a block of maximum `block_max` into a running (max, ...): both sides' factors. max starts
// at -inf.
template <class F>
struct MergeFactors {
  F max;
  F old_factor;
  F block_factor;
};

template <class F>
KERNEL_FN MergeFactors<F> merge_factors(F old_max, F block_max) {
  const F max = select(old_max < block_max, block_max, old_max);
  return {max, math::exp(old_max - max), math::exp(block_max - max)};
}

template <class F>
KERNEL_FN F merge(F old_value, F block_value, const MergeFactors<F>& factors) {
  return multiply_add(block_value, factors.block_factor, old_value * factors.old_factor);
}

KERNEL_NAMESPACE_END
#endif
