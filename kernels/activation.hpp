// Gated activations of the feed-forward layers.
#if defined(KERNELS_ACTIVATION_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_ACTIVATION_HPP_
#else
#define KERNELS_ACTIVATION_HPP_
#endif

#include "kernels/math.hpp"

KERNEL_NAMESPACE_BEGIN

template <class F>
KERNEL_FN F swiglu(F gate, F up) {
  return math::silu(gate) * up;
}

// beta tanh(g / beta) sigmoid(g) * u', with u' = linear_beta tanh(u / linear_beta), or u where
// linear_beta <= 0.
template <class F>
KERNEL_FN F situ_glu(F gate, F up, float beta, float linear_beta) {
  const F bounded = F(beta) * math::tanh(gate / F(beta)) * math::sigmoid(gate);
  const F linear = linear_beta > 0 ? F(linear_beta) * math::tanh(up / F(linear_beta)) : up;
  return bounded * linear;
}

KERNEL_NAMESPACE_END
#endif
