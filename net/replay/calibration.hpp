// The parameters of a roofline device, measured on a running Sluice server.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "net/replay/live_server.hpp"
#include "runtime/sim/device_file.hpp"

namespace net {

struct CalibrationOptions {
  LiveServer server;
  std::string model;  // directory or config.json of what it serves; empty: where the server says
  std::string name;   // of the device
  uint32_t rounds = 5;
  uint64_t seed = 1;
};

struct CalibrationRow {
  std::string load;
  double measured_us = 0, predicted_us = 0;
};

struct Calibration {
  runtime::DeviceFile device;
  std::vector<CalibrationRow> rows;
  double request_us = 0;  // what a request costs beside its steps; no constant of a device
  double median_error = 0, worst_error = 0;
};

// What is not fitted (memory, the experts' skew) stays as in `base`, a roofline device. Throws
// std::runtime_error or std::invalid_argument naming what is wrong.
Calibration calibrate(const runtime::DeviceFile& base, const CalibrationOptions& options,
                      std::ostream* progress);

// The measured loads beside their predictions, for people.
std::string calibration_table(const Calibration& calibration);
// A device file that begins with that table.
std::string calibration_file(const Calibration& calibration);

}  // namespace net
