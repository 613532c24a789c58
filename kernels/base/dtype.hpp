// Element types of stored tensors and their sizes. Activations are always fp32 on the CPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernels {

enum class DType : uint8_t { kF32, kF16, kBF16, kU8, kMXFP4 };

std::string_view to_string(DType dtype);

// Bytes of one element; kMXFP4 has no whole-byte element (two values share a byte) and asserts.
size_t dtype_bytes(DType dtype);

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rounds to nearest, ties to even; a NaN stays a NaN.
uint16_t float_to_bf16(float value);

float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);  // round to nearest even, overflow to infinity

}  // namespace kernels
