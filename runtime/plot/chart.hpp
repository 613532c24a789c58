// A picture of series over two axes, as an SVG that needs nothing beside it. It can be read without
// colour: lines differ in dashes and marker shapes, areas and bars in hatching.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plot/plot_axis.hpp"

namespace runtime {

enum class SeriesKind : uint8_t {
  kLine,    // points joined in their order
  kSteps,   // a value holds until the next one's x
  kPoints,  // markers alone
  kBand,    // the area between `low` and `high` over x
  kBar,     // in row y, from x = `low` to `high`
};

// Marks that are not finite are left out.
struct Mark {
  double x = 0, y = 0;
  double low = 0, high = 0;  // of a line's or point's mark: what y ranges over, where they differ
  std::string note = {};     // written at it

  static Mark at(double x, double y) { return {x, y, y, y}; }
  static Mark range(double x, double y, double low, double high) { return {x, y, low, high}; }
  static Mark band(double x, double low, double high) { return {x, high, low, high}; }
  static Mark bar(size_t row, double from, double to, std::string note = {}) {
    return {to, static_cast<double>(row), from, to, std::move(note)};
  }
};

struct Series {
  std::string name;  // in the legend; empty: none there
  SeriesKind kind = SeriesKind::kLine;
  std::vector<Mark> marks;
};

// The series' own dashes, shape, hatching and colour; those of index + 7 are the same.
struct SeriesStyle {
  const char *colour, *dashes;
  int shape, hatch;
  static SeriesStyle of(size_t index);
};

class Chart {
 public:
  Chart(std::string title, Axis x, Axis y);

  void add(Series series) { series_.push_back(std::move(series)); }
  bool empty() const;  // there is no mark to be drawn
  const std::string& title() const { return title_; }
  std::string svg() const;

 private:
  std::string title_;
  Axis x_, y_;
  std::vector<Series> series_;
};

}  // namespace runtime
