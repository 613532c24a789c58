// What a chart is drawn on: the frame that its axes span, in pixels, and the elements so far.
#pragma once

#include <string>
#include <string_view>

#include "runtime/plot/chart.hpp"

namespace runtime {

struct ChartFrame {  // in pixels
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

class ChartCanvas {
 public:
  ChartCanvas(const ChartFrame& frame, const AxisScale& x, const AxisScale& y, bool rows_down)
      : frame_(frame), x_(x), y_(y), rows_down_(rows_down) {}

  void axes(const std::string& x_label, const std::string& y_label);
  void series(const Series& series, size_t index);
  // One entry of the legend, its left end at `x` and its middle at `y`.
  void key(const Series& series, size_t index, double x, double y);
  void text(double x, double y, std::string_view text, std::string_view attributes = {});
  const std::string& elements() const { return out_; }

 private:
  double x(double value) const { return frame_.left + frame_.width * x_.place(value); }
  double y(double value) const {
    const double place = y_.place(value);
    return frame_.top + frame_.height * (rows_down_ ? place : 1 - place);
  }
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  void box(double left, double top, double width, double height, std::string_view attributes);
  void marker(double x, double y, const SeriesStyle& style);
  void path(const Series& series, const SeriesStyle& style);
  void markers(const Series& series, const SeriesStyle& style);
  void band(const Series& series, const SeriesStyle& style);
  void bars(const Series& series, const SeriesStyle& style);
  void note(const Mark& mark, double left, double right, double middle);

  ChartFrame frame_;
  const AxisScale& x_;
  const AxisScale& y_;
  bool rows_down_;  // row 0 of a scale of names is on top
  std::string out_;
};

bool is_finite(const Mark& mark);
double text_width(std::string_view text);  // about, in pixels, at the size of labels
// The patterns that areas are filled with; every picture of a page may bring the same ones.
std::string hatch_patterns();

}  // namespace runtime
