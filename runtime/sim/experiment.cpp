#include "runtime/sim/experiment.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <set>
#include <stdexcept>

#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/published_figure.hpp"
#include "runtime/text_file.hpp"
#include "runtime/toml_document.hpp"

namespace runtime {
namespace {

namespace fs = std::filesystem;

using Make = std::unique_ptr<ExperimentKind> (*)(const ExperimentBase&, TomlFields&);
const std::vector<std::string_view> kKinds = {"prefill", "memory", "frontier", "step", "trimming"};
constexpr std::array<Make, 5> kMakers = {prefill_experiment, memory_experiment, frontier_experiment,
                                         step_experiment, trimming_experiment};

struct Opened {
  ExperimentBase base;
  std::unique_ptr<ExperimentKind> kind;
};

// Names of config/, or paths.
std::string located(const std::string& name, const fs::path& folder, const char* ending) {
  return name.find('/') != name.npos ? name : (folder / (name + ending)).string();
}

std::unique_ptr<Opened> open(TomlFields& in, const std::string& config_directory) {
  size_t kind = 0;
  in.require("kind", "a kind of experiment");
  in.one_of("kind", kind, kKinds);
  std::string device = "gb300", model = "kimi-k3";
  in.text("device", device);
  in.text("model", model);
  const fs::path config(config_directory);
  auto opened = std::make_unique<Opened>(
      Opened{{config_directory, read_device(located(device, config / "devices", ".toml")),
              ModelGeometry::load(located(model, config / "geometries", ".json"))},
             nullptr});
  opened->kind = kMakers[kind](opened->base, in);
  return opened;
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

StepModel ExperimentBase::model(const std::string& layout, const StepOptions& options) const {
  return {device, geometry, parse_layout(layout), options};
}

ExperimentResult run_experiment(std::string_view toml, const std::string& path,
                                const std::string& config_directory) {
  TomlFields in = TomlFields::parse(toml, path);
  ExperimentResult result;
  in.text("name", result.name);
  in.require("name", "what was published, and where");
  in.require("experiment", "a table with its kind; traffic is for `run` and `sweep`");
  std::unique_ptr<Opened> opened;
  in.table("experiment",
           [&](TomlFields& settings) { opened = open(settings, config_directory); });
  in.require("figure", "what is asked, as [[figure]]");
  in.tables("figure", [&](TomlFields& row) {
    DeviceFigure figure = read_published(row);
    figure.group = result.name;
    try {
      const Prediction prediction = opened->kind->predict(row);
      figure.predicted = prediction.value;
      figure.unit = prediction.unit;
      if (!prediction.note.empty())
        figure.source = prediction.note + (figure.source.empty() ? "" : "; " + figure.source);
    } catch (const std::invalid_argument& error) {  // a layout that cannot be
      throw std::runtime_error(path + ": " + figure.name + ": " + error.what());
    }
    result.figures.push_back(std::move(figure));
  });
  in.finish();
  result.device = opened->base.device;
  return result;
}

std::vector<std::string> shipped_experiments(const std::string& config_directory) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(config_directory) / "scenarios")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".toml") continue;
    if (parse_toml(read_text(path), path).contains("experiment")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void write_experiments(std::ostream& out, const std::vector<ExperimentResult>& results) {
  std::vector<DeviceFigure> figures;
  std::set<std::string> devices;
  for (const ExperimentResult& result : results) {
    if (devices.insert(result.device.path).second) write_device(out, result.device);
    figures.insert(figures.end(), result.figures.begin(), result.figures.end());
  }
  out << "\n";
  write_figures(out, figures);
}

}  // namespace runtime
