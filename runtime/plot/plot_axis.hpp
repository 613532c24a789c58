// One axis of a chart: where a value lies on it, and the values that are written along it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runtime {

struct Axis {
  std::string label;  // with its unit: "time (h)"
  bool log = false;   // then values of 0 or less lie at the low end
  // Ends; none: round numbers around what is drawn.
  std::optional<double> low = {}, high = {};
  // Rows instead of numbers: row i, from 0, is called names[i].
  std::vector<std::string> names = {};
};

class AxisScale {
 public:
  struct Tick {
    double value = 0;
    std::string text;
    bool operator==(const Tick&) const = default;
  };
  // [least, most]: what is drawn.
  AxisScale(const Axis& axis, double least, double most);

  double place(double value) const;  // 0 at the low end, 1 at the high end, between them for others
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  void fit_linear(const Axis& axis, double least, double most);
  void fit_log(const Axis& axis, double least, double most);

  bool log_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
};

// The largest of 1, 2 and 5 times a power of ten that is not above `value`, which is positive; and
// the smallest that is not below it.
double round_down(double value);
double round_up(double value);

}  // namespace runtime
