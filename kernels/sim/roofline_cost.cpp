#include "kernels/sim/roofline_cost.hpp"

#include <algorithm>

namespace kernels {

double roofline_us(const RooflineParams& device, const RooflineWork& work) {
  if (work.tokens == 0) return 0;
  const double memory = work.bytes / device.bytes_per_us;
  const double products = work.flops / device.flops_per_us;
  return device.step_us + work.layers * device.layer_us + work.tokens * device.token_us +
         std::max(memory, products);
}

}  // namespace kernels
