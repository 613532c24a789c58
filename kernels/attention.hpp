// Online softmax over paged positions. A block of 64 absolute positions yields a partial (max m,
// weight sum l, weighted sum o). Partials merge in ascending order: blocks into their span of 512
// positions, then the spans, the first span standing as it is. So it does not matter who computed a
// span.
#if defined(KERNELS_ATTENTION_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_ATTENTION_HPP_
#else
#define KERNELS_ATTENTION_HPP_
#endif

#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN

constexpr unsigned kAttentionBlock = 64;  // positions
constexpr unsigned kAttentionSpan = 512;  // positions, 8 blocks
// A score is summed over dimensions in blocks of 256, as a matrix product is.
constexpr unsigned kScoreBlock = 256;

// Merging a block of maximum `block_max` into a running (max, ...): both sides' factors, e^x of
// numbers up to 0. max starts at -inf.
template <class F>
struct MergeFactors {
  F max;
  F old_factor;
  F block_factor;
};

template <class F>
KERNEL_FN MergeFactors<F> merge_factors(F old_max, F block_max) {
  const F max = select(old_max < block_max, block_max, old_max);
  return {max, math::exp_up_to_40(old_max - max), math::exp_up_to_40(block_max - max)};
}

template <class F>
KERNEL_FN F merge(F old_value, F block_value, F old_factor, F block_factor) {
  return multiply_add(block_value, block_factor, old_value * old_factor);
}

KERNEL_NAMESPACE_END
#endif
