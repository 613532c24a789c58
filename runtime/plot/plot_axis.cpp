#include "runtime/plot/plot_axis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace runtime {
namespace {

constexpr double kSlack = 1e-9;  // of a step: 0.1 * 3 lies on the tick 0.3
constexpr int kSteps = 5;        // about so many between two ends

struct Unit {
  double size;
  const char* suffix;
};

Unit unit_of(double most, double room) {
  for (const Unit unit : {Unit{1e12, "T"}, Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "k"}})
    if (most >= unit.size * room) return unit;
  return {1, ""};
}

// With as many digits as tell steps apart.
std::string step_text(double value, double step, Unit unit) {
  if (std::abs(value) < step * kSlack) return "0";
  const int digits =
      std::max(0, static_cast<int>(std::ceil(-std::log10(step / unit.size) - kSlack)));
  char text[48];
  std::snprintf(text, sizeof text, "%.*f%s", digits, value / unit.size, unit.suffix);
  return text;
}

std::string power_text(double value) {
  const Unit unit = unit_of(value, 1 - kSlack);
  char text[48];
  std::snprintf(text, sizeof text, "%.6g%s", value / unit.size, unit.suffix);
  return text;
}

}  // namespace

double round_down(double value) {
  const double power = std::pow(10, std::floor(std::log10(value) + kSlack));
  for (const double digit : {5.0, 2.0})
    if (value >= digit * power * (1 - kSlack)) return digit * power;
  return power;
}

double round_up(double value) {
  const double below = round_down(value);
  if (below >= value * (1 - kSlack)) return below;
  return round_down(2.5 * below * (1 + kSlack));  // 1 to 2, 2 to 5, 5 to 10
}

AxisScale::AxisScale(const Axis& axis, double least, double most) : log_(axis.log) {
  if (!axis.names.empty()) {
    low_ = -0.5;
    high_ = static_cast<double>(axis.names.size()) - 0.5;
    for (size_t i = 0; i < axis.names.size(); ++i)
      ticks_.push_back({static_cast<double>(i), axis.names[i]});
  } else if (log_) {
    fit_log(axis, least, most);
  } else {
    fit_linear(axis, least, most);
  }
}

void AxisScale::fit_linear(const Axis& axis, double least, double most) {
  low_ = axis.low.value_or(std::min(least, axis.high.value_or(least)));
  high_ = axis.high.value_or(std::max(most, low_));
  if (!(high_ > low_)) high_ = low_ + std::max(std::abs(low_), 1.0);
  const double step = round_up((high_ - low_) / kSteps);
  if (!axis.low) low_ = std::floor(low_ / step + kSlack) * step;
  if (!axis.high) high_ = std::ceil(high_ / step - kSlack) * step;
  const Unit unit = unit_of(std::max(std::abs(low_), std::abs(high_)), 10);
  for (double i = std::ceil(low_ / step - kSlack); i * step <= high_ + step * kSlack; ++i)
    ticks_.push_back({i * step, step_text(i * step, step, unit)});
}

void AxisScale::fit_log(const Axis& axis, double least, double most) {
  if (!(most > 0)) most = 1;
  if (!(least > 0)) least = most / 1000;
  low_ = axis.low.value_or(round_down(least));
  high_ = axis.high.value_or(round_up(most));
  if (!(high_ > low_)) high_ = 10 * low_;
  const double decades = std::log10(high_ / low_);
  const bool between = decades < 3;  // 2 and 5 are written too
  const double stride = std::ceil(decades / 8);
  const auto is_inside = [this](double value) {
    return value >= low_ * (1 - kSlack) && value <= high_ * (1 + kSlack);
  };
  for (double i = std::floor(std::log10(low_) + kSlack); std::pow(10, i) <= high_ * (1 + kSlack);
       i += stride) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10, i);
      if ((digit == 1 || between) && is_inside(value)) ticks_.push_back({value, power_text(value)});
    }
  }
}

double AxisScale::place(double value) const {
  value = std::clamp(value, low_, high_);
  if (log_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

}  // namespace runtime
