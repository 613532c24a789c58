// The number operations of kernels/kernel_fn.hpp for a double: the rules of kernels/*.hpp, which
// serve in float, computed to 1e-16. A type of its own, because a bare double would slip into the
// overloads for float. Include before any rule is used with it.
#pragma once

#include <cmath>

#include "kernels/math.hpp"

// A namespace of its own too: the rules call sigmoid and the like of their own namespace, and would
// find those of the tests beside them.
namespace support::number {

struct Double {
  double value = 0;
  Double() = default;
  explicit Double(double x) : value(x) {}
};

inline Double operator+(Double a, Double b) { return Double(a.value + b.value); }
inline Double operator-(Double a, Double b) { return Double(a.value - b.value); }
inline Double operator*(Double a, Double b) { return Double(a.value * b.value); }
inline Double operator/(Double a, Double b) { return Double(a.value / b.value); }
inline bool operator<(Double a, Double b) { return a.value < b.value; }
inline Double multiply_add(Double a, Double b, Double c) { return a * b + c; }
inline Double square_root(Double x) { return Double(std::sqrt(x.value)); }
inline Double select(bool mask, Double yes, Double no) { return mask ? yes : no; }

}  // namespace support::number

namespace support {
using number::Double;
}

// What math.hpp approximates to the precision of a float; all else is built from these.
namespace kernels::math {

template <>
inline support::Double absolute(support::Double x) {
  return support::Double(std::fabs(x.value));
}
template <>
inline support::Double exp(support::Double x) {
  return support::Double(std::exp(x.value));
}
template <>
inline support::Double exp_up_to_40(support::Double x) {
  return exp(x);
}
template <>
inline support::Double tanh(support::Double x) {
  return support::Double(std::tanh(x.value));
}
template <>
inline support::Double log1p(support::Double x) {
  return support::Double(std::log1p(x.value));
}

}  // namespace kernels::math
