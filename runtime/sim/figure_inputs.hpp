// What the figures of a modelled device are computed from: files of config/.
#pragma once

#include <string>
#include <vector>

#include "runtime/sim/device_figure.hpp"
#include "runtime/sim/device_file.hpp"
#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/step_model.hpp"

namespace runtime {

// A measured run of prefill and decode servers apart (config/figures/pd-frontier.csv).
struct PdPoint {
  std::string sweep;
  ParallelLayout prefill, decode;
  uint32_t prefill_servers = 0, decode_servers = 0, devices = 0;
  double user_tps = 0, device_tps = 0;
};
// Throws std::runtime_error naming file and line.
std::vector<PdPoint> read_pd_points(const std::string& path);

struct FigureInputs {
  explicit FigureInputs(const std::string& config_directory);

  StepModel model(const DeviceFile& device, const std::string& layout,
                  const StepOptions& options = {}) const {
    return {device, k3, parse_layout(layout), options};
  }

  DeviceFile gb300, gb200, b300;
  ModelGeometry k3;
  std::vector<PdPoint> pd_points;
};

void add_prefill_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures);
void add_memory_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures);
void add_pd_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures);
void add_decode_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures);
void add_speculation_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures);

}  // namespace runtime
