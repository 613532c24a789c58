// The constants of a modelled device by name: unit, and where the value goes.
#pragma once

#include <span>
#include <string_view>

#include "kernels/sim/device_params.hpp"

namespace runtime {

struct DeviceKey {
  std::string_view key, unit;
  double& (*field)(kernels::DeviceParams&);
  bool positive;  // else 0 is a value too
};

std::span<const DeviceKey> kernel_keys();    // form = "kernels"
std::span<const DeviceKey> roofline_keys();  // form = "roofline"

}  // namespace runtime
