// Which SIMD targets the CPU kernels are compiled for; include before any Highway header. Left out:
// SSSE3 (no such machine matters) and AVX-512, SVE and RVV (the tiles are laid out for vectors of 4
// or 8 floats).
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

// The portable target. Highway shuns it before GCC 12.3 because of a bug in vectorised high
// multiplications (PR 106322); no kernel multiplies integers, and the tests run every kernel on
// this target.
#ifndef HWY_BROKEN_EMU128
#define HWY_BROKEN_EMU128 0
#endif
