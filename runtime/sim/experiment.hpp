// A published experiment as a file of config/scenarios: what is modelled (kind, device, settings),
// and the figures asked of it, each beside what was published and what would be accepted. Formulas
// and closed loops alone; traffic is played by net/replay.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/device_figure.hpp"
#include "runtime/sim/device_file.hpp"
#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/step_model.hpp"
#include "runtime/toml_fields.hpp"

namespace runtime {

// What experiments of every kind are computed from.
struct ExperimentBase {
  std::string config_directory;  // with devices/, geometries/ and figures/
  DeviceFile device;
  ModelGeometry geometry;

  StepModel model(const std::string& layout, const StepOptions& options = {}) const;
};

struct Prediction {
  double value = 0;
  std::string unit;
  std::string note;  // what only the computation knows
};

// One kind of experiment.
class ExperimentKind {
 public:
  virtual ~ExperimentKind() = default;
  // Computes what a [[figure]] asks for; reads its own keys of it.
  virtual Prediction predict(TomlFields& figure) = 0;
};

// Each reads its settings from [experiment]. `base` must outlive what is returned.
std::unique_ptr<ExperimentKind> prefill_experiment(const ExperimentBase& base, TomlFields& in);
std::unique_ptr<ExperimentKind> memory_experiment(const ExperimentBase& base, TomlFields& in);
std::unique_ptr<ExperimentKind> frontier_experiment(const ExperimentBase& base, TomlFields& in);
std::unique_ptr<ExperimentKind> step_experiment(const ExperimentBase& base, TomlFields& in);
std::unique_ptr<ExperimentKind> trimming_experiment(const ExperimentBase& base, TomlFields& in);

struct ExperimentResult {
  std::string name;
  DeviceFile device;
  std::vector<DeviceFigure> figures;
};

// Throws std::runtime_error naming file and key, what is wrong and what would be right.
ExperimentResult run_experiment(std::string_view toml, const std::string& path,
                                const std::string& config_directory);

// The files of every experiment in config_directory/scenarios, in order of their names.
std::vector<std::string> shipped_experiments(const std::string& config_directory);
// The devices' versions, then a table of all figures with error and provenance, and the misses.
void write_experiments(std::ostream& out, const std::vector<ExperimentResult>& results);

}  // namespace runtime
