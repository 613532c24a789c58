// The elementary functions against the C library in double precision, as plain floats and on every
// SIMD target.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/math_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/math.hpp"

#ifndef TESTS_KERNELS_MATH_FUNCTIONS
#define TESTS_KERNELS_MATH_FUNCTIONS
enum class Function { kExp, kExpUpTo40, kLog, kLog1p, kTanh, kSigmoid, kSoftplus, kInverseSqrt };
#endif

KERNEL_NAMESPACE_BEGIN
namespace {

KERNEL_FN Lanes evaluate(Function function, Lanes x) {
  switch (function) {
    case Function::kExp:
      return math::exp(x);
    case Function::kExpUpTo40:
      return math::exp_up_to_40(x);
    case Function::kLog:
      return math::log(x);
    case Function::kLog1p:
      return math::log1p(x);
    case Function::kTanh:
      return math::tanh(x);
    case Function::kSigmoid:
      return math::sigmoid(x);
    case Function::kSoftplus:
      return math::softplus(x);
    case Function::kInverseSqrt:
      return math::inverse_sqrt(x);
  }
  return x;
}

void evaluate_all(Function function, const float* x, float* y,
                  size_t count) {  // count is a multiple of 8
  for (size_t i = 0; i < count; i += kWidth) evaluate(function, Lanes::load(x + i)).store(y + i);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
#include "tests/kernels/tools.hpp"

namespace kernels {
HWY_EXPORT(evaluate_all);
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double exact(Function function, double x) {
  switch (function) {
    case Function::kExp:
    case Function::kExpUpTo40:
      return std::exp(x);
    case Function::kLog:
      return std::log(x);
    case Function::kLog1p:
      return std::log1p(x);
    case Function::kTanh:
      return std::tanh(x);
    case Function::kSigmoid:
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case Function::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Function::kInverseSqrt:
      return 1 / std::sqrt(x);
  }
  return x;
}

// |y - exact| in units of the last place of a float of the exact value's size (subnormals have that
// of 2^-126).
double ulps(float y, double exact_value) {
  if (std::isnan(exact_value)) return std::isnan(y) ? 0 : kInfinity;
  if (std::isinf(static_cast<float>(exact_value)))
    return y == static_cast<float>(exact_value) ? 0 : kInfinity;
  const int exponent = exact_value == 0 ? -126 : std::max(std::ilogb(exact_value), -126);
  return std::fabs(double{y} - exact_value) / std::ldexp(1.0, exponent - 23);
}

// Floats of every sign and exponent, about 2^19 of them; NaNs and infinities included.
std::vector<float> all_magnitudes() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 8191)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (const float edge : {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 88.72284f, 88.72283f, -87.3f,
                           -103.9f, -104.1f, 0.625f, 1.0f}) {
    x.push_back(edge);
  }
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  while (x.size() % 8 != 0) x.push_back(1.0f);
  return x;
}

struct Bound {
  Function function;
  double ulps;        // with fused multiply-add
  double plain_ulps;  // without
};

constexpr Bound kBounds[] = {{Function::kExp, 1.1, 2.2},        {Function::kLog, 1.5, 2.0},
                             {Function::kLog1p, 2.0, 3.0},      {Function::kTanh, 2.0, 2.5},
                             {Function::kSigmoid, 2.5, 3.0},    {Function::kSoftplus, 2.6, 3.0},
                             {Function::kInverseSqrt, 1.5, 1.5}};

}  // namespace

TEST_CASE("Every elementary function is within a few ulp of the real one on every SIMD target",
          "[kernels][math]") {
  const std::vector<float> x = all_magnitudes();
  std::vector<float> y(x.size());
  tools::for_each_target([&] {
    const bool fused = std::string(kernels::cpu_target_name()) == "AVX2";
    for (const Bound& bound : kBounds) {
      using kernels::HWY_NAMESPACE::kWidth;
      [&] {
        using namespace kernels;
        HWY_DYNAMIC_DISPATCH(evaluate_all)(bound.function, x.data(), y.data(), x.size());
      }();
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(y[i], exact(bound.function, x[i]));
        if (error > worst) worst = error, at = x[i];
      }
      INFO("function " << static_cast<int>(bound.function) << " at " << at);
      CHECK(worst <= (fused ? bound.ulps : bound.plain_ulps));
    }
  });
}

TEST_CASE("The shorter exp has the bits of exp up to 40", "[kernels][math]") {
  std::vector<float> x = all_magnitudes();
  for (float& one : x)
    if (one > 40.0f) one = 40.0f;
  std::vector<float> y(x.size()), shorter(x.size());
  tools::for_each_target([&] {
    using namespace kernels;
    HWY_DYNAMIC_DISPATCH(evaluate_all)(Function::kExp, x.data(), y.data(), x.size());
    HWY_DYNAMIC_DISPATCH(evaluate_all)(Function::kExpUpTo40, x.data(), shorter.data(), x.size());
    size_t other = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]))
        other += !std::isnan(shorter[i]);
      else
        other += std::bit_cast<uint32_t>(y[i]) != std::bit_cast<uint32_t>(shorter[i]);
    }
    CHECK(other == 0);
  });
}

TEST_CASE("exp saturates and lets a NaN through", "[kernels][math]") {
  std::vector<float> x = {
      -HUGE_VALF, HUGE_VALF, -1000.0f, 1000.0f, std::numeric_limits<float>::quiet_NaN(),
      0.0f,       -0.0f,     1.0f};
  std::vector<float> y(8);
  tools::for_each_target([&] {
    using namespace kernels;
    HWY_DYNAMIC_DISPATCH(evaluate_all)(Function::kExp, x.data(), y.data(), 8);
    CHECK(y[0] == 0.0f);
    CHECK(y[1] == HUGE_VALF);
    CHECK(y[2] == 0.0f);
    CHECK(y[3] == HUGE_VALF);
    CHECK(std::isnan(y[4]));
    CHECK(y[5] == 1.0f);
    CHECK(y[6] == 1.0f);
  });
}
#endif
