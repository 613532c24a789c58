#include "runtime/mxfp4.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

// Magnitudes meet at these midpoints; on a midpoint the smaller one is taken.
constexpr float kMagnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
constexpr float kMidpoints[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

uint8_t encode(float value) {
  const float magnitude = std::fabs(value);
  uint8_t code = 0;
  while (code < 7 && magnitude > kMidpoints[code]) ++code;
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8u : 0u));
}

}  // namespace

uint8_t encode_mxfp4(std::span<const float, kMxfp4Group> values,
                     std::span<uint8_t, kMxfp4Group / 2> packed) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  int exponent = -126;
  if (largest > 0) {
    int above = 0;  // largest = fraction * 2^above, fraction in [0.5, 1); 6 = 0.75 * 2^3
    const float fraction = std::frexp(largest, &above);
    exponent = std::clamp(above - 3 + (fraction > 0.75f ? 1 : 0), -126, 127);
  }
  const float inverse =
      std::ldexp(1.0f, -exponent);  // a power of two: the products below are exact
  for (size_t i = 0; i < packed.size(); ++i) {
    const unsigned even = encode(values[2 * i] * inverse);
    const unsigned odd = encode(values[2 * i + 1] * inverse);
    packed[i] = static_cast<uint8_t>(even | (odd << 4));
  }
  return static_cast<uint8_t>(exponent + 127);
}

std::vector<float> decode_mxfp4(const kernels::MatrixView& matrix) {
  VERIFY(matrix.dtype == kernels::DType::kMXFP4);
  const auto* codes = static_cast<const uint8_t*>(matrix.data);
  std::vector<float> values(matrix.n * matrix.k);
  for (size_t i = 0; i < values.size(); ++i) {
    const unsigned code = codes[i / 2] >> (i % 2 * 4) & 15u;
    const float scale = std::ldexp(1.0f, matrix.scale[i / kMxfp4Group] - 127);
    values[i] = (code & 8u ? -kMagnitudes[code & 7u] : kMagnitudes[code & 7u]) * scale;
  }
  return values;
}

}  // namespace runtime
