#include "runtime/plot/chart_canvas.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/plot/svg_text.hpp"

namespace runtime {
namespace {

constexpr double kMarker = 4.5;    // half a marker's width
constexpr size_t kMarkers = 12;    // at most so many along one line
constexpr double kSwatch = 34;     // of a legend's entry
constexpr size_t kStyles = 7;

// Colours that people who see few of them can still tell apart (Okabe and Ito 2008).
constexpr SeriesStyle kStyle[kStyles] = {
    {"#0072b2", "", 0, 0},           {"#d55e00", "8 4", 1, 1},     {"#009e73", "2 3", 2, 2},
    {"#7b3294", "10 3 2 3", 3, 3},   {"#000000", "5 2", 4, 4},     {"#b8860b", "12 4", 5, 5},
    {"#56b4e9", "8 3 2 3 2 3", 6, 6}};

// Shapes around the origin.
constexpr const char* kShape[kStyles] = {
    "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0Z",  // circle
    "M-4 -4H4V4H-4Z",                                     // square
    "M0 -5L5 4H-5Z",                                      // triangle
    "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",                        // diamond
    "M-4 -4L4 4M-4 4L4 -4",                               // cross
    "M0 -5V5M-5 0H5",                                     // plus
    "M0 5L5 -4H-5Z",                                      // triangle upside down
};

// On a tile of 8 by 8.
constexpr const char* kHatch[kStyles] = {
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",  // rising
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",  // falling
    "M0 4H8",                        // level
    "M4 0V8",                        // upright
    "M0 0L8 8M0 8L8 0",              // crossed
    "M3 4H5",                        // dots
    "M0 4H8M4 0V8",                  // a grid
};

std::string fill_of(const SeriesStyle& style) {
  return "url(#hatch-" + std::to_string(style.hatch) + ")";
}

std::string point(double x, double y) { return svg_number(x) + "," + svg_number(y); }

}  // namespace

SeriesStyle SeriesStyle::of(size_t index) { return kStyle[index % kStyles]; }

bool is_finite(const Mark& mark) {
  return std::isfinite(mark.x) && std::isfinite(mark.y) && std::isfinite(mark.low) &&
         std::isfinite(mark.high);
}

// Of a common sans-serif face at 13 pixels.
double text_width(std::string_view text) { return 7.2 * static_cast<double>(text.size()); }

std::string hatch_patterns() {
  std::ostringstream out;
  out << "<defs>\n";
  for (size_t i = 0; i < kStyles; ++i) {
    out << "<pattern id=\"hatch-" << i
        << "\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
        << "<rect width=\"8\" height=\"8\" fill=\"" << kStyle[i].colour
        << "\" fill-opacity=\"0.15\"/><path d=\"" << kHatch[i] << "\" stroke=\""
        << kStyle[i].colour << "\" stroke-width=\"1.2\" fill=\"none\"/></pattern>\n";
  }
  out << "</defs>\n";
  return out.str();
}

void ChartCanvas::text(double x, double y, std::string_view text, std::string_view attributes) {
  out_ += "<text" + svg_attribute("x", x) + svg_attribute("y", y) + std::string(attributes) + ">" +
          xml_escaped(text) + "</text>\n";
}

void ChartCanvas::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  out_ += "<line" + svg_attribute("x1", x1) + svg_attribute("y1", y1) + svg_attribute("x2", x2) +
          svg_attribute("y2", y2) + std::string(attributes) + "/>\n";
}

void ChartCanvas::box(double left, double top, double width, double height,
                      std::string_view attributes) {
  out_ += "<rect" + svg_attribute("x", left) + svg_attribute("y", top) +
          svg_attribute("width", width) + svg_attribute("height", height) +
          std::string(attributes) + "/>\n";
}

void ChartCanvas::axes(const std::string& x_label, const std::string& y_label) {
  constexpr std::string_view kGrid = R"( stroke="#dddddd")";
  for (const AxisScale::Tick& tick : x_.ticks()) {
    line(x(tick.value), frame_.top, x(tick.value), frame_.bottom(), kGrid);
    text(x(tick.value), frame_.bottom() + 18, tick.text, R"( class="x" text-anchor="middle")");
  }
  for (const AxisScale::Tick& tick : y_.ticks()) {
    if (!rows_down_) line(frame_.left, y(tick.value), frame_.right(), y(tick.value), kGrid);
    text(frame_.left - 8, y(tick.value) + 4.5, tick.text, R"( class="y" text-anchor="end")");
  }
  box(frame_.left, frame_.top, frame_.width, frame_.height, R"( fill="none" stroke="#666666")");
  text(frame_.left + frame_.width / 2, frame_.bottom() + 40, x_label, R"( text-anchor="middle")");
  const double middle = frame_.top + frame_.height / 2;
  text(16, middle, y_label,
       " text-anchor=\"middle\" transform=\"rotate(-90 16 " + svg_number(middle) + ")\"");
}

void ChartCanvas::marker(double x, double y, const SeriesStyle& style) {
  out_ += "<path" +
          svg_attribute("transform", "translate(" + svg_number(x) + " " + svg_number(y) + ")") +
          svg_attribute("d", kShape[style.shape]) + svg_attribute("stroke", style.colour) +
          " stroke-width=\"1.5\" fill=\"#ffffff\"/>\n";
}

void ChartCanvas::series(const Series& series, size_t index) {
  const SeriesStyle style = SeriesStyle::of(index);
  out_ += "<g" + svg_attribute("class", "series") + svg_attribute("data-name", series.name) + ">\n";
  switch (series.kind) {
    case SeriesKind::kLine:
    case SeriesKind::kSteps:
      path(series, style);
      markers(series, style);
      break;
    case SeriesKind::kPoints:
      markers(series, style);
      break;
    case SeriesKind::kBand:
      band(series, style);
      break;
    case SeriesKind::kBar:
      bars(series, style);
      break;
  }
  out_ += "</g>\n";
}

void ChartCanvas::path(const Series& series, const SeriesStyle& style) {
  std::string points;
  double last_y = 0;
  for (const Mark& mark : series.marks) {
    if (!is_finite(mark)) continue;
    const double at_x = x(mark.x), at_y = y(mark.y);
    if (series.kind == SeriesKind::kSteps && !points.empty()) points += point(at_x, last_y) + " ";
    points += point(at_x, at_y) + " ";
    last_y = at_y;
  }
  if (points.empty()) return;
  points.pop_back();
  out_ += "<polyline fill=\"none\" stroke-width=\"1.8\"" + svg_attribute("stroke", style.colour) +
          (*style.dashes != 0 ? svg_attribute("stroke-dasharray", style.dashes) : "") +
          svg_attribute("points", points) + "/>\n";
}

void ChartCanvas::markers(const Series& series, const SeriesStyle& style) {
  const bool is_line = series.kind != SeriesKind::kPoints;
  const size_t stride = is_line ? (series.marks.size() + kMarkers - 1) / kMarkers : 1;
  for (size_t i = 0; i < series.marks.size(); ++i) {
    const Mark& mark = series.marks[i];
    if (!is_finite(mark)) continue;
    if (mark.low < mark.high) {
      line(x(mark.x), y(mark.low), x(mark.x), y(mark.high), svg_attribute("stroke", style.colour));
    }
    if (i % stride == 0) marker(x(mark.x), y(mark.y), style);
    if (!mark.note.empty()) note(mark, x(mark.x) - kMarker, x(mark.x) + kMarker, y(mark.y));
  }
}

void ChartCanvas::band(const Series& series, const SeriesStyle& style) {
  std::string high, low;
  for (const Mark& mark : series.marks) {
    if (!is_finite(mark)) continue;
    high += point(x(mark.x), y(mark.high)) + " ";
    low = " " + point(x(mark.x), y(mark.low)) + low;
  }
  if (high.empty()) return;
  high.pop_back();
  out_ += "<polygon stroke-width=\"1\"" + svg_attribute("stroke", style.colour) +
          svg_attribute("fill", fill_of(style)) + svg_attribute("points", high + low) + "/>\n";
}

void ChartCanvas::bars(const Series& series, const SeriesStyle& style) {
  const double rows = y_.high() - y_.low();
  const double height = 0.7 * frame_.height / rows;
  for (const Mark& mark : series.marks) {
    if (!is_finite(mark)) continue;
    const double from = x(mark.low), to = x(mark.high), middle = y(mark.y);
    box(from, middle - height / 2, to - from, height,
        svg_attribute("fill", fill_of(style)) + svg_attribute("stroke", style.colour));
    if (!mark.note.empty()) note(mark, from, to, middle);
  }
}

// To the right of what it belongs to, else to the left, else on its right end; the halo keeps it
// readable over lines.
void ChartCanvas::note(const Mark& mark, double left, double right, double middle) {
  constexpr std::string_view kHalo = R"( stroke="#ffffff" stroke-width="3" paint-order="stroke")";
  const double width = text_width(mark.note);
  const bool to_right = right + 6 + width < frame_.right();
  const bool to_left = !to_right && left - 6 - width >= frame_.left;
  text(to_right ? right + 6 : (to_left ? left : right) - 6, middle + 4.5, mark.note,
       std::string(R"( class="note")") + (to_right ? "" : R"( text-anchor="end")") +
           std::string(kHalo));
}

void ChartCanvas::key(const Series& series, size_t index, double x, double y) {
  const SeriesStyle style = SeriesStyle::of(index);
  if (series.kind == SeriesKind::kBand || series.kind == SeriesKind::kBar) {
    box(x, y - 7, kSwatch, 14,
        svg_attribute("fill", fill_of(style)) + svg_attribute("stroke", style.colour));
  } else {
    if (series.kind != SeriesKind::kPoints) {
      line(x, y, x + kSwatch, y,
           " stroke-width=\"1.8\"" + svg_attribute("stroke", style.colour) +
               (*style.dashes != 0 ? svg_attribute("stroke-dasharray", style.dashes) : ""));
    }
    marker(x + kSwatch / 2, y, style);
  }
  text(x + kSwatch + 6, y + 4.5, series.name, R"( class="key")");
}

}  // namespace runtime
