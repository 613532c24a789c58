// The same random numbers as floats and as doubles, for an operation over a number type: floats run
// the kernels, doubles the plain definition.
#pragma once

#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "kernels/train/gradient_ops.hpp"
#include "tests/kernels/tools.hpp"
#include "tests/support/plain_gradient_ops.hpp"

namespace tools {

struct Numbers {
  std::vector<float> single;
  std::vector<double> real;

  Numbers() = default;
  explicit Numbers(std::vector<float> values)
      : single(std::move(values)), real(single.begin(), single.end()) {}
  Numbers(std::mt19937& rng, size_t count, float scale = 1.0f)
      : Numbers(random_floats(rng, count, scale)) {}

  // Null where there are no numbers.
  template <class Real>
  Real* data() {
    if constexpr (std::is_same_v<Real, float>) {
      return single.empty() ? nullptr : single.data();
    } else {
      return real.empty() ? nullptr : real.data();
    }
  }
  template <class Real>
  kernels::Grid<Real> grid(size_t ld) {
    return {data<Real>(), ld};
  }
  // Largest difference over the largest magnitude; a NaN is as large as can be.
  double error() const {
    double worst = 0, most = 1e-30;
    for (size_t i = 0; i < real.size(); ++i) {
      const double difference = std::fabs(double{single[i]} - real[i]);
      if (!(difference <= worst)) worst = std::isnan(difference) ? HUGE_VAL : difference;
      most = std::max(most, std::fabs(real[i]));
    }
    return worst / most;
  }
};

// run(ops, Real()) with the kernels and with the definition.
template <class Run>
void run_both(const Run& run) {
  const auto ops = kernels::make_cpu_gradient_ops();
  support::PlainGradientOps<double> plain;
  run(*ops, float());
  run(static_cast<kernels::GradientOps<double>&>(plain), double());
}

}  // namespace tools
