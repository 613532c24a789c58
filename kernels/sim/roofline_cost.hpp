// Time of a step by two rates and three overheads, in microseconds: the form for a device whose
// kernels were not measured one by one.
#pragma once

#include "kernels/sim/device_params.hpp"

namespace kernels {

struct RooflineWork {
  double bytes = 0;  // weights, states and cached rows read and written
  double flops = 0;
  double layers = 0, tokens = 0;
};

double roofline_us(const RooflineParams& device, const RooflineWork& work);

}  // namespace kernels
