#include "kernels/sim/product_cost.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/verify.hpp"

namespace kernels {
namespace {

constexpr double kTile = 128;           // rows and columns of a multiprocessor's tile
constexpr double kPersistentWaves = 8;  // from here on a ragged last wave is hidden

double imbalance(const DeviceParams& device, double groups) {
  if (groups <= 1) return 1;
  return groups <= 4 ? device.expert_imbalance_few : device.expert_imbalance_many;
}

}  // namespace

double product_waves(const DeviceParams& device, const ProductShape& shape) {
  if (shape.m <= kTile) return 0;
  const double tiles = std::ceil(shape.m / kTile) * std::ceil(shape.n / kTile);
  const double waves = tiles / device.multiprocessors;
  return waves < kPersistentWaves ? std::ceil(waves) : waves;
}

double product_us(const DeviceParams& device, const ProductShape& shape) {
  VERIFY(shape.m >= 0 && shape.n > 0 && shape.k > 0);
  if (shape.m == 0) return 0;
  const double bytes = 2 * shape.n * shape.k + 2 * shape.m * (shape.n + shape.k);
  const double wave_us =
      device.multiprocessors * 2 * kTile * kTile * shape.k / device.gemm_flops_per_us;
  return device.kernel_us +
         std::max(bytes / device.weight_bytes_per_us, product_waves(device, shape) * wave_us);
}

double experts_us(const DeviceParams& device, const ExpertWork& work) {
  VERIFY(work.slices >= 1 && work.groups >= 1);
  if (work.tokens == 0) return 0;
  const double rows = work.top_k * work.tokens / work.groups;
  const double weights_us =
      work.distinct / work.groups *
      (device.expert_us + work.expert_bytes / work.slices / device.expert_bytes_per_us);
  const double rows_us =
      rows *
      (device.expert_row_us + 2 * work.expert_params / (work.slices * device.expert_flops_per_us));
  return device.moe_us + weights_us + imbalance(device, work.groups) * rows_us;
}

}  // namespace kernels
