// Every published figure that the modelled devices are held against without a server: what follows
// from the formulas and closed loops alone.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "runtime/sim/device_figure.hpp"

namespace runtime {

// `config_directory`: where devices/, geometries/ and figures/ are. Throws std::runtime_error for a
// file that cannot be read.
std::vector<DeviceFigure> device_figures(const std::string& config_directory);

// The devices' versions, then a table of all figures with error and provenance, and the misses.
// True when every tested figure passes.
bool write_device_figures(std::ostream& out, const std::string& config_directory);

}  // namespace runtime
