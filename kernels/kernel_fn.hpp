// How a rule (kernels/<rule>.hpp) is written once and compiled for SIMD lanes, for plain floats and
// for CUDA threads.
//
// A rule is a KERNEL_FN template over a number type F: `Lanes` of kernels/cpu/lanes.hpp, or float.
// GCC refuses to inline a function of one instruction set into a function of another, so a rule is
// compiled again for every SIMD target, in that target's namespace; that is why rule headers have
// no `#pragma once` but a guard that flips with HWY_TARGET_TOGGLE. Plain and CUDA code includes a
// rule like any header and finds it in namespace kernels.
//
// F offers + - * / < and: multiply_add(a, b, c) = a * b + c (fused where the target can),
// square_root, select(mask, a, b), to_bits / from_bits (32-bit words with + - & | << >>).
#pragma once

#if defined(__CUDACC__)
#define KERNEL_FN __host__ __device__ inline
#else
#define KERNEL_FN inline __attribute__((always_inline))
#endif
#define KERNEL_LAMBDA __attribute__((always_inline))  // after a lambda's parameters

// KERNELS_PER_TARGET comes from kernels/cpu/lanes.hpp: this translation unit is included once per
// SIMD target.
#ifdef KERNELS_PER_TARGET
#define KERNEL_NAMESPACE_BEGIN \
  HWY_BEFORE_NAMESPACE();      \
  namespace kernels {          \
  namespace HWY_NAMESPACE {
#define KERNEL_NAMESPACE_END \
  }                          \
  }                          \
  HWY_AFTER_NAMESPACE();
#else
#define KERNEL_NAMESPACE_BEGIN namespace kernels {
#define KERNEL_NAMESPACE_END }
#endif
