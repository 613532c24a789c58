// MXFP4: groups of 32 values share a power of two (E8M0), each value is one of 16 codes
// (E2M1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.hpp"

namespace runtime {

inline constexpr size_t kMxfp4Group = 32;

// Rounds 32 values to the nearest codes under the smallest scale that keeps the largest within 6.
// Writes 16 bytes, the even column in the low nibble, and returns the scale byte.
uint8_t encode_mxfp4(std::span<const float, kMxfp4Group> values,
                     std::span<uint8_t, kMxfp4Group / 2> packed);

// The values of an MXFP4 matrix, [n, k] row by row; exact in fp32 (and in bf16).
std::vector<float> decode_mxfp4(const kernels::MatrixView& matrix);

}  // namespace runtime
