#include "kernels/cuda/rms_norm.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/norm.hpp"
#include "kernels/scalar.hpp"

namespace kernels::cuda {
namespace {

constexpr int kLanes = 16;        // virtual lanes of a row reduction, the same 16 as on the CPU
constexpr int kRowsPerBlock = 8;  // 8 rows * 16 lanes = 128 threads

__global__ void rms_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                float eps, float* y, size_t rows, size_t width) {
  const size_t row = blockIdx.x * size_t{kRowsPerBlock} + threadIdx.y;
  if (row >= rows) return;  // whole groups of 16 threads leave together
  const float* source = x + row * width;
  float lane_sum = 0.0f;  // lane l: one FMA chain over l, l + 16, l + 32, ...
  for (size_t i = threadIdx.x; i < width; i += kLanes)
    lane_sum = multiply_add(source[i], source[i], lane_sum);
  // fold_lanes across threads: l takes l + 8, then + 4, + 2, + 1. Addition commutes bit for bit, so
  // every lane ends with it.
  const unsigned group = 0xffffu << ((threadIdx.y & 1u) * kLanes);
  for (int step = kLanes / 2; step > 0; step /= 2)
    lane_sum += __shfl_xor_sync(group, lane_sum, step, kLanes);
  const float inverse = inverse_rms(lane_sum, static_cast<float>(width), eps);
  for (size_t i = threadIdx.x; i < width; i += kLanes)
    y[row * width + i] = rms_scale(source[i], inverse, weight[i]);
}

}  // namespace

void rms_norm(Stream& stream, const float* x, const float* weight, float eps, float* y, size_t rows,
              size_t width) {
  VERIFY(width > 0);
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>((rows + kRowsPerBlock - 1) / kRowsPerBlock);
  rms_norm_kernel<<<blocks, dim3(kLanes, kRowsPerBlock), 0, stream_handle(stream)>>>(
      x, weight, eps, y, rows, width);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace kernels::cuda
