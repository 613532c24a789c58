// The number operations of kernels/kernel_fn.hpp for one float: what a CUDA thread and a plain loop
// use.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/kernel_fn.hpp"

namespace kernels {

KERNEL_FN float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
KERNEL_FN float square_root(float x) { return std::sqrt(x); }
KERNEL_FN float select(bool mask, float yes, float no) { return mask ? yes : no; }

#if defined(__CUDA_ARCH__)
KERNEL_FN uint32_t to_bits(float x) { return __float_as_uint(x); }
KERNEL_FN float from_bits(uint32_t bits) { return __uint_as_float(bits); }
#else
KERNEL_FN uint32_t to_bits(float x) { return std::bit_cast<uint32_t>(x); }
KERNEL_FN float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
#endif

}  // namespace kernels
