// exp, log, tanh and their relatives: one body for SIMD lanes, CPU floats and CUDA threads, so that
// none depends on a C library. At most about 2 ulp; saturate as the real functions do, and a NaN
// stays a NaN.
#if defined(KERNELS_MATH_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_MATH_HPP_
#else
#define KERNELS_MATH_HPP_
#endif

#include "kernels/kernel_fn.hpp"
#ifndef KERNELS_PER_TARGET
#include "kernels/scalar.hpp"
#endif

KERNEL_NAMESPACE_BEGIN
namespace math {

// ln 2 = kLn2High + kLn2Low; kLn2High has 9 significant bits, so n * kLn2High is exact for every
// exponent n.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kLog2E = 1.44269504f;
// 1.5 * 2^23: adding it rounds a float of magnitude < 2^22 to an integer, which is then readable in
// the low bits.
constexpr float kRoundShift = 12582912.0f;
constexpr unsigned kRoundShiftBits = 0x4b400000u;

template <class F>
KERNEL_FN F absolute(F x) {
  return from_bits(to_bits(x) & 0x7fffffffu);
}

// e^(c - n ln2) for n = round(c / ln2): Cody-Waite reduction to |r| <= ln2/2, degree 6.
template <class F>
KERNEL_FN F exp_fraction(F c, F n) {
  const F r = multiply_add(n, F(-kLn2Low), multiply_add(n, F(-kLn2High), c));
  F p = F(0.001381315873004496f);
  p = multiply_add(p, r, F(0.00836941134184599f));
  p = multiply_add(p, r, F(0.04166845604777336f));
  p = multiply_add(p, r, F(0.16666515171527863f));
  p = multiply_add(p, r, F(0.4999999403953552f));
  return multiply_add(r * r, p, r) + F(1.0f);
}

// e^x; 2^n in two factors so that results may be subnormal.
template <class F>
KERNEL_FN F exp(F x) {
  F c = select(x < F(-104.0f), F(-104.0f), x);  // e^-104 rounds to 0
  c = select(F(89.0f) < c, F(89.0f), c);        // e^89 is infinite
  const F shifted = multiply_add(c, F(kLog2E), F(kRoundShift));
  const F n = shifted - F(kRoundShift);
  const F y = exp_fraction(c, n);
  const auto exponent = to_bits(shifted) - kRoundShiftBits;
  const auto half = to_bits(multiply_add(n, F(0.5f), F(kRoundShift))) - kRoundShiftBits;
  const F scale = from_bits((half + 127u) << 23);
  const F scale_rest = from_bits((exponent - half + 127u) << 23);
  return y * scale * scale_rest;
}

// e^x for x <= 40, to the same bits in fewer operations: 2^n = 2^(n + 65) 2^-65, the first product
// exact. The rounding's constant carries 65 and the bias of an exponent (and is even, as ties go).
template <class F>
KERNEL_FN F exp_up_to_40(F x) {
  constexpr float kShift = kRoundShift + 65 + 127;
  const F c = select(x < F(-104.0f), F(-104.0f), x);
  const F shifted = multiply_add(c, F(kLog2E), F(kShift));
  const F y = exp_fraction(c, shifted - F(kShift));
  return y * from_bits(to_bits(shifted) << 23) * F(0x1p-65f);
}

// 1 / (1 + e^-x), with full relative accuracy for negative x too.
template <class F>
KERNEL_FN F sigmoid(F x) {
  const F e = exp_up_to_40(F(0.0f) - absolute(x));
  return select(x < F(0.0f), e, F(1.0f)) / (F(1.0f) + e);
}

// Odd polynomial below 0.625, 1 - 2 / (e^2|x| + 1) above (which would lose all digits near 0).
template <class F>
KERNEL_FN F tanh(F x) {
  const F a = absolute(x);
  const F z = x * x;
  F p = F(-0.005515154451131821f);
  p = multiply_add(p, z, F(0.020469410344958305f));
  p = multiply_add(p, z, F(-0.05368801951408386f));
  p = multiply_add(p, z, F(0.1333083063364029f));
  p = multiply_add(p, z, F(-0.3333325982093811f));
  const F near = multiply_add(x * z, p, x);
  const F far = F(1.0f) - F(2.0f) / (exp(a + a) + F(1.0f));
  return select(a < F(0.625f), near, from_bits(to_bits(far) | (to_bits(x) & 0x80000000u)));
}

// Natural logarithm; log(0) = -inf, log of a negative number is NaN.
template <class F>
KERNEL_FN F log(F x) {
  const auto subnormal = x < F(0x1p-126f);
  const F scaled = select(subnormal, x * F(0x1p24f), x);
  // Mantissa m in [sqrt(1/2), sqrt(2)), x = 2^n m.
  const auto offset = to_bits(scaled) - 0x3f3504f3u;
  const F m = from_bits((offset & 0x007fffffu) + 0x3f3504f3u);
  const auto biased = (offset + (127u << 23)) >> 23;  // n + 127
  F n = from_bits(biased | 0x4b000000u) - F(0x1p23f + 127.0f);
  n = n - select(subnormal, F(24.0f), F(0.0f));
  const F f = m - F(1.0f);
  F p = F(0.06746599823236465f);
  p = multiply_add(p, f, F(-0.11675640940666199f));
  p = multiply_add(p, f, F(0.11888174712657928f));
  p = multiply_add(p, f, F(-0.12405591458082199f));
  p = multiply_add(p, f, F(0.14219550788402557f));
  p = multiply_add(p, f, F(-0.1666799634695053f));
  p = multiply_add(p, f, F(0.2000211924314499f));
  p = multiply_add(p, f, F(-0.25000008940696716f));
  p = multiply_add(p, f, F(0.3333331346511841f));
  const F square = f * f;
  F y = multiply_add(square * f, p, n * F(kLn2Low));
  y = multiply_add(square, F(-0.5f), y) + f;
  y = multiply_add(n, F(kLn2High), y);
  const F infinity = from_bits(to_bits(F(0.0f)) + 0x7f800000u);
  y = select(x < infinity, y, x + x);  // +inf and NaN as they are
  y = select(x < F(0x1p-149f), F(0.0f) - infinity, y);
  return select(x < F(0.0f), infinity - infinity, y);
}

// log(1 + x): the rounding error of 1 + x is put back to first order.
template <class F>
KERNEL_FN F log1p(F x) {
  const F u = F(1.0f) + x;
  const F lost = (x - (u - F(1.0f))) / u;
  const F usable = select(F(0.0f) < u, select(x < F(0x1p25f), lost, F(0.0f)), F(0.0f));
  return log(u) + usable;
}

// log(1 + e^x) without overflow.
template <class F>
KERNEL_FN F softplus(F x) {
  return select(F(0.0f) < x, x, F(0.0f)) + log1p(exp_up_to_40(F(0.0f) - absolute(x)));
}

template <class F>
KERNEL_FN F silu(F x) {
  return x * sigmoid(x);
}

// x^-1/2 from two correctly rounded operations, so every backend has the same bits.
template <class F>
KERNEL_FN F inverse_sqrt(F x) {
  return F(1.0f) / square_root(x);
}

}  // namespace math
KERNEL_NAMESPACE_END
#endif
