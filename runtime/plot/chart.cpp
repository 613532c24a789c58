#include "runtime/plot/chart.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/plot/chart_canvas.hpp"
#include "runtime/plot/svg_text.hpp"

namespace runtime {
namespace {

constexpr double kWidth = 760, kHeight = 320;  // of the picture; of the frame with numbers on it
constexpr double kRow = 30;                    // of the frame, for each name
constexpr double kRight = 24, kBelow = 54, kLabel = 30, kTitle = 34;
constexpr double kKeyRow = 22, kKeyGap = 24, kKeySwatch = 40;

// What a series' marks reach over.
struct Extent {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  void take(double value, bool positive_only) {
    if (positive_only && value <= 0) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  AxisScale scale(const Axis& axis) const {
    return least <= most ? AxisScale(axis, least, most) : AxisScale(axis, axis.log ? 1 : 0, 1);
  }
};

std::pair<Extent, Extent> extents(const std::vector<Series>& all, const Axis& x, const Axis& y) {
  Extent of_x, of_y;
  for (const Series& series : all) {
    for (const Mark& mark : series.marks) {
      if (!is_finite(mark)) continue;
      of_x.take(mark.x, x.log);
      of_y.take(mark.y, y.log);
      Extent& range = series.kind == SeriesKind::kBar ? of_x : of_y;
      const bool is_log = series.kind == SeriesKind::kBar ? x.log : y.log;
      range.take(mark.low, is_log);
      range.take(mark.high, is_log);
    }
  }
  return {of_x, of_y};
}

// Where each entry of the legend stands: in rows as wide as the picture.
struct LegendPlace {
  size_t series;
  double x, row;
};

std::vector<LegendPlace> legend(const std::vector<Series>& all, double left) {
  std::vector<LegendPlace> places;
  double x = left, row = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.empty()) continue;
    const double width = kKeySwatch + text_width(all[i].name) + kKeyGap;
    if (x > left && x + width > kWidth) {
      x = left;
      ++row;
    }
    places.push_back({i, x, row});
    x += width;
  }
  return places;
}

double widest(const std::vector<AxisScale::Tick>& ticks) {
  double width = 0;
  for (const AxisScale::Tick& tick : ticks) width = std::max(width, text_width(tick.text));
  return width;
}

}  // namespace

Chart::Chart(std::string title, Axis x, Axis y)
    : title_(std::move(title)), x_(std::move(x)), y_(std::move(y)) {}

bool Chart::empty() const {
  for (const Series& series : series_)
    for (const Mark& mark : series.marks)
      if (is_finite(mark)) return false;
  return true;
}

std::string Chart::svg() const {
  const auto [of_x, of_y] = extents(series_, x_, y_);
  const AxisScale x = of_x.scale(x_), y = of_y.scale(y_);
  ChartFrame frame;
  frame.left = kLabel + widest(y.ticks()) + 8;
  frame.width = kWidth - kRight - frame.left;
  const std::vector<LegendPlace> keys = legend(series_, frame.left);
  frame.top = kTitle + (keys.empty() ? 0 : kKeyRow * (keys.back().row + 1)) + 8;
  const bool has_rows = !y_.names.empty();
  frame.height = has_rows ? kRow * static_cast<double>(y_.names.size()) : kHeight;
  const double height = frame.bottom() + kBelow;

  ChartCanvas canvas(frame, x, y, has_rows);
  canvas.text(frame.left, 22, title_, R"( class="title" font-size="16" font-weight="bold")");
  for (const LegendPlace& key : keys)
    canvas.key(series_[key.series], key.series, key.x, kTitle + kKeyRow * (key.row + 0.5));
  canvas.axes(x_.label, y_.label);
  for (size_t i = 0; i < series_.size(); ++i) canvas.series(series_[i], i);
  if (empty()) {
    canvas.text(frame.left + frame.width / 2, frame.top + frame.height / 2, "no data",
                R"( text-anchor="middle")");
  }
  const std::string size = svg_number(kWidth) + " " + svg_number(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" +
         svg_attribute("width", kWidth) + svg_attribute("height", height) +
         svg_attribute("viewBox", "0 0 " + size) +
         " font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n<title>" +
         xml_escaped(title_) + "</title>\n" + hatch_patterns() + "<rect" +
         svg_attribute("width", kWidth) + svg_attribute("height", height) +
         " fill=\"#ffffff\"/>\n" + canvas.elements() + "</svg>\n";
}

}  // namespace runtime
