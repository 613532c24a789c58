// Derivatives of the gated activations of kernels/activation.hpp.
#if defined(KERNELS_TRAIN_ACTIVATION_GRAD_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_ACTIVATION_GRAD_HPP_
#else
#define KERNELS_TRAIN_ACTIVATION_GRAD_HPP_
#endif

#include "kernels/math.hpp"

KERNEL_NAMESPACE_BEGIN

// An activation and its slopes in both inputs.
template <class F>
struct GluSlopes {
  F value, dgate, dup;
};

// d silu(x) / dx from s = sigmoid(x)
template <class F>
KERNEL_FN F silu_slope(F x, F s) {
  return s * multiply_add(x, F(1.0f) - s, F(1.0f));
}

template <class F>
KERNEL_FN GluSlopes<F> swiglu_slopes(F gate, F up) {
  const F s = math::sigmoid(gate), silu = gate * s;
  return {silu * up, up * silu_slope(gate, s), silu};
}

// h = beta a s l with a = tanh(gate / beta), s = sigmoid(gate) and l = linear_beta tanh(up /
// linear_beta), or l = up.
template <class F>
KERNEL_FN GluSlopes<F> situ_slopes(F gate, F up, float beta, float linear_beta) {
  const F a = math::tanh(gate * F(1.0f / beta)), s = math::sigmoid(gate);
  const F bounded = F(beta) * a * s;
  const F dbounded = multiply_add(bounded, F(1.0f) - s, s * multiply_add(F(0.0f) - a, a, F(1.0f)));
  if (linear_beta <= 0) return {bounded * up, dbounded * up, bounded};
  const F l = math::tanh(up * F(1.0f / linear_beta)), linear = F(linear_beta) * l;
  return {bounded * linear, dbounded * linear, bounded * multiply_add(F(0.0f) - l, l, F(1.0f))};
}

KERNEL_NAMESPACE_END
#endif
