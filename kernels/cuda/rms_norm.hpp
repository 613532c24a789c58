// RMSNorm on a CUDA stream, in the order of Ops::rms_norm: 16 interleaved lanes per row, then the
// fixed tree.
#pragma once

#include <cstddef>

#include "kernels/device.hpp"

namespace kernels::cuda {

// y = x * (mean(x^2) + eps)^-1/2 * weight; x, y [rows, width] fp32 in device memory, contiguous; y
// may alias x. Grid: ceil(rows / 8) blocks of 128 threads, 16 threads a row; moves 2 * rows * width
// * 4 bytes. The stream must be a CUDA stream.
void rms_norm(Stream& stream, const float* x, const float* weight, float eps, float* y, size_t rows,
              size_t width);

}  // namespace kernels::cuda
