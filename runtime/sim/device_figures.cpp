#include "runtime/sim/device_figures.hpp"

#include <algorithm>
#include <ostream>

#include "runtime/sim/figure_inputs.hpp"

namespace runtime {
namespace {

std::vector<DeviceFigure> figures_of(const FigureInputs& inputs) {
  std::vector<DeviceFigure> figures;
  add_prefill_figures(inputs, figures);
  add_memory_figures(inputs, figures);
  add_pd_figures(inputs, figures);
  add_decode_figures(inputs, figures);
  add_speculation_figures(inputs, figures);
  return figures;
}

void write_device(std::ostream& out, const DeviceFile& device) {
  out << device.name << ", version " << device.version << ", software of " << device.stack
      << "; set with an end-to-end figure in view:";
  for (const DeviceConstant& constant : device.constants) {
    if (constant.provenance != Provenance::kCalibrated) continue;
    out << " " << constant.key << " = " << constant.value;
  }
  out << "\n";
}

}  // namespace

std::vector<DeviceFigure> device_figures(const std::string& config_directory) {
  return figures_of(FigureInputs(config_directory));
}

bool write_device_figures(std::ostream& out, const std::string& config_directory) {
  const FigureInputs inputs(config_directory);
  for (const DeviceFile* device : {&inputs.gb300, &inputs.gb200, &inputs.b300}) {
    write_device(out, *device);
  }
  out << "\n";
  const auto figures = figures_of(inputs);
  write_figures(out, figures);
  return std::all_of(figures.begin(), figures.end(),
                     [](const DeviceFigure& figure) { return figure.passes(); });
}

}  // namespace runtime
