// Reads a modelled device from config/devices: a version, and for every constant its value, unit,
// source and how it was found. A key that is unknown or missing is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/device_params.hpp"

namespace runtime {

// How a constant was found.
enum class Provenance : char {
  kTable = 'T',       // fitted to public tables of kernel times
  kSpec = 'S',        // a specification
  kMeasured = 'M',    // a measurement
  kCalibrated = 'C',  // fitted to one end-to-end figure, which its source names
  kAssumed = 'A',     // a free choice
};

struct DeviceConstant {
  std::string key;
  double value = 0;
  std::string unit, source;
  Provenance provenance = Provenance::kAssumed;
};

struct DeviceFile {
  std::string path, name, stack;  // stack: the software the numbers belong to, as a month
  uint32_t version = 0;
  bool is_roofline = false;               // form = "roofline": two rates instead of kernels
  std::vector<DeviceConstant> constants;  // in the file's order
  kernels::DeviceParams params;

  const DeviceConstant& constant(std::string_view key) const;  // VERIFYs that it exists
};

// Throws std::runtime_error naming file and key, what is wrong and what would be right.
DeviceFile read_device(const std::string& path);
DeviceFile parse_device(std::string_view toml, const std::string& path);
// The text that read_device() takes.
std::string to_toml(const DeviceFile& device);

}  // namespace runtime
