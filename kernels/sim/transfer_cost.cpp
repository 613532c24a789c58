#include "kernels/sim/transfer_cost.hpp"

#include "kernels/base/verify.hpp"

namespace kernels {

double stream_us(const DeviceParams& device, double bytes) {
  return bytes == 0 ? 0 : device.kernel_us + bytes / device.stream_bytes_per_us;
}

bool has_collective(uint32_t ranks) {
  return ranks == 1 || ranks == 2 || ranks == 4 || ranks == 8 || ranks == 16 || ranks == 32;
}

double collective_latency_us(const DeviceParams& device, uint32_t ranks) {
  VERIFY(has_collective(ranks));
  switch (ranks) {
    case 2:
      return device.all_reduce_2_us;
    case 4:
      return device.all_reduce_4_us;
    case 8:
      return device.all_reduce_8_us;
    case 16:
      return device.all_reduce_16_us;
    case 32:
      return device.all_reduce_32_us;
    default:
      return 0;
  }
}

double all_reduce_us(const DeviceParams& device, uint32_t ranks, double bytes) {
  if (ranks == 1 || bytes == 0) return 0;
  const double n = ranks;
  return collective_latency_us(device, ranks) + 2 * (n - 1) / n * bytes / device.bus_bytes_per_us;
}

double exchange_us(const DeviceParams& device, uint32_t ranks, double bytes) {
  if (ranks == 1 || bytes == 0) return 0;
  return collective_latency_us(device, ranks) + bytes / device.bus_bytes_per_us;
}

double handoff_us(const DeviceParams& device, double bytes) {
  return bytes / device.peer_bytes_per_us;
}

double host_load_us(const DeviceParams& device, double bytes) {
  return bytes / device.host_bytes_per_us;
}

}  // namespace kernels
