// What the kernel tests share: random data, exact comparison, every SIMD target, the vectors of the
// model's specification.
#pragma once

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cpu/targets.hpp"
#include "kernels/ops.hpp"
// clang-format off: targets.hpp comes before any Highway header.
#include <hwy/targets.h>
// clang-format on

namespace tools {

inline std::vector<float> random_floats(std::mt19937& rng, size_t count, float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(rng);
  return values;
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Largest |a - b| over |b|'s root mean square.
inline double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double worst = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::fabs(double{a[i]} - b[i]);
    if (!(error <= worst)) worst = error;  // a NaN sticks
    squares += b[i] * b[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(b.size()) + 1e-300);
}

// Restores run-time dispatch when a test is over, whichever way it ends.
class TargetGuard {
 public:
  explicit TargetGuard(int64_t target) { choose(target); }
  ~TargetGuard() { choose(0); }
  TargetGuard(const TargetGuard&) = delete;
  TargetGuard& operator=(const TargetGuard&) = delete;

 private:
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// Runs fn with this machine's best target, and with each lesser one that the build holds.
template <class Fn>
void for_each_target(const Fn& fn) {
#if HWY_ARCH_X86 && !defined(HWY_COMPILE_ONLY_STATIC)
  const std::vector<int64_t> targets = {0, HWY_SSE4, HWY_EMU128};
#else
  const std::vector<int64_t> targets = {0};
#endif
  for (const int64_t target : targets) {
    const TargetGuard guard(target);
    INFO("SIMD target " << kernels::cpu_target_name());
    fn();
  }
}

inline boost::json::object k3_vectors() {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/data/k3-test-vectors.json");
  std::stringstream text;
  text << file.rdbuf();
  return boost::json::parse(text.str()).as_object();
}

// A JSON array of numbers, of any depth, flattened.
inline void flatten(const boost::json::value& value, std::vector<float>& out) {
  if (value.is_array()) {
    for (const auto& item : value.as_array()) flatten(item, out);
  } else {
    out.push_back(value.to_number<float>());
  }
}
inline std::vector<float> numbers(const boost::json::value& value) {
  std::vector<float> out;
  flatten(value, out);
  return out;
}

// A matrix as a weights file would hold it, and its exact values.
struct StoredMatrix {
  kernels::DType dtype;
  size_t n, k;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> scale;
  std::vector<double> value;  // [n, k]

  kernels::MatrixView view() const {
    return {dtype, bytes.data(), scale.empty() ? nullptr : scale.data(), n, k, k, 1};
  }
};

inline StoredMatrix random_matrix(std::mt19937& rng, kernels::DType dtype, size_t n, size_t k) {
  using kernels::DType;
  StoredMatrix m{dtype, n, k, {}, {}, std::vector<double>(n * k)};
  if (dtype == DType::kMXFP4) {
    constexpr double kMagnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    m.bytes.resize(n * k / 2);
    m.scale.resize(n * k / 32);
    for (uint8_t& byte : m.bytes) byte = static_cast<uint8_t>(rng());
    for (uint8_t& byte : m.scale) byte = static_cast<uint8_t>(118 + rng() % 8);
    for (size_t i = 0; i < n * k; ++i) {
      const unsigned code = i % 2 == 0 ? m.bytes[i / 2] & 15u : m.bytes[i / 2] >> 4;
      const double magnitude = std::ldexp(kMagnitude[code & 7u], m.scale[i / 32] - 127);
      m.value[i] = (code & 8u) != 0 ? -magnitude : magnitude;
    }
    return m;
  }
  const std::vector<float> floats = random_floats(rng, n * k, 0.05f);
  m.bytes.resize(n * k * kernels::dtype_bytes(dtype));
  for (size_t i = 0; i < n * k; ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(m.bytes.data() + 4 * i, &floats[i], 4);
      m.value[i] = floats[i];
    } else {
      const bool bf16 = dtype == DType::kBF16;
      const uint16_t bits =
          bf16 ? kernels::float_to_bf16(floats[i]) : kernels::float_to_f16(floats[i]);
      std::memcpy(m.bytes.data() + 2 * i, &bits, 2);
      m.value[i] = bf16 ? kernels::bf16_to_float(bits) : kernels::f16_to_float(bits);
    }
  }
  return m;
}

}  // namespace tools
