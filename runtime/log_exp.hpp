// Natural logarithm and exponential in double, built from the four basic operations: the same bits
// on every machine. Sampling and log-probabilities need more digits than the fp32 functions of the
// kernels give.
#pragma once

#include <bit>
#include <cstdint>

namespace runtime {

// ln 2 in two parts. The high one ends in 21 zero bits, so k * kLn2High is exact for |k| < 2^20.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

constexpr double power_of_two(int exponent) {  // exponent in [-1022, 1023]
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// x: positive, finite and normal. x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m -
// 1) / (m + 1)), whose argument is at most 0.1716, so the last of twelve terms is below 2^-60.
inline double log_double(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);  // [1, 2)
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  const double e = static_cast<double>(exponent);
  return e * kLn2High + (2.0 * (s + s * series) + e * kLn2Low);
}

// x <= 700; below -700 the answer is 0. x = k ln 2 + r with |r| <= 0.35, e^r by its Taylor series
// (degree 14: below 2^-57).
inline double exp_double(double x) {
  if (!(x > -700.0)) return 0;
  const int k = static_cast<int>(x * 0x1.71547652b82fep+0 + (x < 0 ? -0.5 : 0.5));
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double series = 1;
  for (int n = 14; n >= 1; --n) series = 1.0 + series * r * (1.0 / n);
  return series * power_of_two(k);
}

}  // namespace runtime
