// Derivatives of the gated activations of kernels/activation.hpp.
#if defined(KERNELS_TRAIN_ACTIVATION_GRAD_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_ACTIVATION_GRAD_HPP_
#else
#define KERNELS_TRAIN_ACTIVATION_GRAD_HPP_
#endif

#include "kernels/math.hpp"

KERNEL_NAMESPACE_BEGIN

// e^x for x <= 87 as scale (1 + rest), so that e^x - 1 is exact for small x too: math::exp without
// what infinite and subnormal results need. Below -87 it stays at e^-87.
template <class F>
struct Exponential {
  F scale, rest;

  KERNEL_FN F value() const { return multiply_add(scale, rest, scale); }
  KERNEL_FN F minus_one() const { return multiply_add(scale, rest, scale - F(1.0f)); }
};

template <class F>
KERNEL_FN Exponential<F> exponential(F x) {
  const F c = select(x < F(-87.0f), F(-87.0f), x);
  const F shifted = multiply_add(c, F(math::kLog2E), F(math::kRoundShift));
  const F n = shifted - F(math::kRoundShift);
  const F r = multiply_add(n, F(-math::kLn2Low), multiply_add(n, F(-math::kLn2High), c));
  F p = F(0.001381315873004496f);
  p = multiply_add(p, r, F(0.00836941134184599f));
  p = multiply_add(p, r, F(0.04166845604777336f));
  p = multiply_add(p, r, F(0.16666515171527863f));
  p = multiply_add(p, r, F(0.4999999403953552f));
  return {from_bits((to_bits(shifted) - (math::kRoundShiftBits - 127u)) << 23),
          multiply_add(r * r, p, r)};
}

// -|x|, and x with the sign of y.
template <class F>
KERNEL_FN F minus_absolute(F x) {
  return from_bits(to_bits(x) | 0x80000000u);
}
template <class F>
KERNEL_FN F with_sign_of(F x, F y) {
  return from_bits(to_bits(x) | (to_bits(y) & 0x80000000u));
}

// sigmoid(x) and 1 - sigmoid(x), both with full relative accuracy.
template <class F>
struct SigmoidPair {
  F s, rest;
};

template <class F>
KERNEL_FN SigmoidPair<F> sigmoid_pair(F x) {
  const F e = exponential(minus_absolute(x)).value();
  const F large = F(1.0f) / (F(1.0f) + e), small = e * large;
  const auto negative = x < F(0.0f);
  return {select(negative, small, large), select(negative, large, small)};
}

// d silu(x) / dx
template <class F>
KERNEL_FN F silu_slope(F x, SigmoidPair<F> sigmoid) {
  return sigmoid.s * multiply_add(x, sigmoid.rest, F(1.0f));
}

// An activation and its slopes in both inputs.
template <class F>
struct GluSlopes {
  F value, dgate, dup;
};

template <class F>
KERNEL_FN GluSlopes<F> swiglu_slopes(F gate, F up) {
  const SigmoidPair<F> sigmoid = sigmoid_pair(gate);
  const F silu = gate * sigmoid.s;
  return {silu * up, up * silu_slope(gate, sigmoid), silu};
}

// h = beta a s l with a = tanh(gate / beta), s = sigmoid(gate) and l = linear_beta tanh(up /
// linear_beta), or l = up. With E = e^(-2 |x|): tanh |x| = (1 - E) / (1 + E), and with E = e^-|x| a
// sigmoid is 1 / (1 + E) or E / (1 + E); one division serves all of them.
template <class F>
KERNEL_FN GluSlopes<F> situ_slopes(F gate, F up, float beta, float linear_beta) {
  const F one(1.0f), two(2.0f);
  const F ea = exponential(minus_absolute(gate) * F(2.0f / beta)).minus_one();
  const F es = exponential(minus_absolute(gate)).value();
  const F na = two + ea, ns = one + es;
  const bool bounded_up = linear_beta > 0;
  const F el =
      bounded_up ? exponential(minus_absolute(up) * F(2.0f / linear_beta)).minus_one() : one;
  const F nl = bounded_up ? two + el : one;
  const F inverse = one / (na * ns * nl);
  const F a = with_sign_of((F(0.0f) - ea) * (ns * nl) * inverse, gate);
  const F large = na * nl * inverse, small = es * large;  // s and 1 - s
  const auto negative = gate < F(0.0f);
  const F s = select(negative, small, large), rest = select(negative, large, small);
  const F value = F(beta) * a * s;
  const F slope = s * multiply_add(F(beta) * a, rest, multiply_add(F(0.0f) - a, a, one));
  if (!bounded_up) return {value * up, slope * up, value};
  const F l = with_sign_of((F(0.0f) - el) * (na * ns) * inverse, up);
  const F linear = F(linear_beta) * l;
  return {value * linear, slope * linear, value * multiply_add(F(0.0f) - l, l, one)};
}

KERNEL_NAMESPACE_END
#endif
