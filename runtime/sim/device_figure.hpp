// One published figure beside what the modelled device says of it, and what would be accepted.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace runtime {

// How far a prediction is one.
enum class FigureKind {
  kHeldOut,     // no constant was fitted to it
  kCalibrated,  // a constant was fitted to it, or set with it in view
  kCount,       // arithmetic or a count, no constant
};

struct DeviceFigure {
  std::string group, name, unit;
  double predicted = 0;
  std::string source;  // of the published figure, and what the prediction rests on
  std::optional<double> published;
  std::string said;  // what was published where it is no number
  // What `predicted` must lie in; neither: shown, not tested.
  std::optional<double> low, high;
  FigureKind kind = FigureKind::kHeldOut;

  DeviceFigure& within(double part);  // of the published number
  DeviceFigure& at_least(double value);
  DeviceFigure& at_most(double value);

  bool is_tested() const { return low || high; }
  bool passes() const { return (!low || predicted >= *low) && (!high || predicted <= *high); }
  double error() const;  // relative; 0 without a published number
  // Failed its test or, untested, is more than a fifth off.
  bool is_miss() const;
};

// A table with errors and provenance, in groups, then how many are accepted, and the misses.
void write_figures(std::ostream& out, const std::vector<DeviceFigure>& figures);

}  // namespace runtime
