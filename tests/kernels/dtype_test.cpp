#include "kernels/base/dtype.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace kernels;

TEST_CASE("Every 16-bit pattern survives a trip through fp32", "[kernels][property]") {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float bf16 = bf16_to_float(bits), f16 = f16_to_float(bits);
    if (std::isnan(bf16)) {
      if (!std::isnan(bf16_to_float(float_to_bf16(bf16)))) FAIL("bf16 NaN lost: " << i);
    } else if (float_to_bf16(bf16) != bits) {
      FAIL("bf16 " << i);
    }
    if (std::isnan(f16)) {
      if (!std::isnan(f16_to_float(float_to_f16(f16)))) FAIL("f16 NaN lost: " << i);
    } else if (float_to_f16(f16) != bits) {
      FAIL("f16 " << i);
    }
  }
}

TEST_CASE("A float rounds to the nearest 16-bit value, ties to even", "[kernels][property]") {
  // Between two neighbouring patterns: just below the middle goes down, just above up, the middle
  // to the even one.
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    const float low = f16_to_float(static_cast<uint16_t>(i)),
                high = f16_to_float(static_cast<uint16_t>(i + 1));
    const float middle = (low + high) / 2;  // exact in fp32
    if (float_to_f16(std::nextafter(middle, low)) != i) FAIL("f16 below the middle after " << i);
    if (float_to_f16(std::nextafter(middle, high)) != i + 1)
      FAIL("f16 above the middle after " << i);
    if (float_to_f16(middle) != (i % 2 == 0 ? i : i + 1)) FAIL("f16 tie after " << i);
  }
  for (uint32_t i = 0; i < 0x7f7f; ++i) {
    const float middle = std::bit_cast<float>((i << 16) | 0x8000u);
    if (float_to_bf16(std::nextafter(middle, 0.0f)) != i) FAIL("bf16 below the middle after " << i);
    if (float_to_bf16(middle) != (i % 2 == 0 ? i : i + 1)) FAIL("bf16 tie after " << i);
  }
}

TEST_CASE("fp16 overflows to infinity from 65520 on", "[kernels]") {
  CHECK(float_to_f16(65519.0f) == 0x7bff);
  CHECK(float_to_f16(65520.0f) == 0x7c00);
  CHECK(float_to_f16(-1e30f) == 0xfc00);
  CHECK(float_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(float_to_f16(1e-9f) == 0);
}
