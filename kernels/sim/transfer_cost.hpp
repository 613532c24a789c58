// Time of what moves bytes on a modelled device: streaming operations, collectives, hand-offs and
// the host link, in microseconds. Sizes are bytes, never elements.
#pragma once

#include <cstdint>

#include "kernels/sim/device_params.hpp"

namespace kernels {

double stream_us(const DeviceParams& device, double bytes);  // one kernel that reads and writes

// Latency alone among `ranks`, which is 1, 2, 4, 8, 16 or 32; 0 for one rank.
double collective_latency_us(const DeviceParams& device, uint32_t ranks);
bool has_collective(uint32_t ranks);  // the latency is known

// Every rank holds `bytes` and ends with the sum: 2 (n - 1) / n of them cross its link.
double all_reduce_us(const DeviceParams& device, uint32_t ranks, double bytes);
// A rank sends the others `bytes` in all: (n - 1) / n of what it holds.
double exchange_us(const DeviceParams& device, uint32_t ranks, double bytes);

double handoff_us(const DeviceParams& device, double bytes);    // to the next pipeline stage
double host_load_us(const DeviceParams& device, double bytes);  // host memory to one device

}  // namespace kernels
