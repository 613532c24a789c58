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

  DeviceFigure& against(double value);
  DeviceFigure& against(std::string text);
  DeviceFigure& within(double part);  // of the published number
  DeviceFigure& at_least(double value);
  DeviceFigure& at_most(double value);
  DeviceFigure& is(FigureKind what);

  bool is_tested() const { return low || high; }
  bool passes() const { return (!low || predicted >= *low) && (!high || predicted <= *high); }
  double error() const;  // relative; 0 without a published number
  // Failed its test or, untested, is more than a fifth off.
  bool is_miss() const;
};

// Figures of one group, in order.
class FigureGroup {
 public:
  FigureGroup(std::string name, std::vector<DeviceFigure>& figures)
      : name_(std::move(name)), figures_(figures) {}
  // The reference is good until the next one is added.
  DeviceFigure& add(std::string name, std::string unit, double predicted, std::string source = "");

 private:
  std::string name_;
  std::vector<DeviceFigure>& figures_;
};

void write_figures(std::ostream& out, const std::vector<DeviceFigure>& figures);

}  // namespace runtime
