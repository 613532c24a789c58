#include "runtime/mxfp4.hpp"

#include <algorithm>
#include <cmath>

namespace runtime {

namespace {

// Magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 meet at these midpoints; on a midpoint the smaller
// magnitude is taken.
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

}  // namespace runtime
