#include "runtime/plot/chart.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/text_file.hpp"
#include "runtime/train/loss_curve.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/xml_document.hpp"

using runtime::Axis;
using runtime::AxisScale;
using runtime::Chart;
using runtime::Mark;
using runtime::Series;
using runtime::SeriesKind;
using support::XmlDocument;
using support::XmlElement;

namespace {

std::string tick_texts(const Axis& axis, double least, double most) {
  const AxisScale scale(axis, least, most);
  std::string all;
  for (const auto& tick : scale.ticks()) all += (all.empty() ? "" : " ") + tick.text;
  return all;
}

std::string linear(double least, double most) { return tick_texts({"x"}, least, most); }
std::string logarithmic(double least, double most) { return tick_texts({"x", true}, least, most); }

// Where a value lies, from two ticks that are written in the picture.
class PixelScale {
 public:
  PixelScale(const XmlDocument& svg, const std::string& axis, double first, double second)
      : first_(first) {
    first_pixel_ = pixel(svg, axis, first);
    per_unit_ = (pixel(svg, axis, second) - first_pixel_) / (second - first);
  }
  double at(double value) const { return first_pixel_ + (value - first_) * per_unit_; }

 private:
  // A label's baseline is 4.5 below the middle of its line.
  static double pixel(const XmlDocument& svg, const std::string& axis, double value) {
    for (const XmlElement& text : svg.find("text", {{"class", axis}})) {
      if (std::stod(text.text) == value)
        return axis == "x" ? text.number("x") : text.number("y") - 4.5;
    }
    FAIL("there is no tick at " << value);
    return 0;
  }

  double first_, first_pixel_ = 0, per_unit_ = 0;
};

Series line(const std::string& name, std::vector<std::pair<double, double>> points) {
  Series series{name, SeriesKind::kLine, {}};
  for (const auto& [x, y] : points) series.marks.push_back(Mark::at(x, y));
  return series;
}

bool has_text(const XmlDocument& svg, const std::string& wanted) {
  for (const XmlElement& text : svg.find("text"))
    if (text.text == wanted) return true;
  return false;
}

}  // namespace

TEST_CASE("Ticks are round numbers around the data", "[plot]") {
  CHECK(linear(0, 97) == "0 20 40 60 80 100");
  CHECK(linear(3.2, 4.1) == "3.2 3.4 3.6 3.8 4.0 4.2");
  CHECK(linear(-1, 1) == "-1.0 -0.5 0 0.5 1.0");
  CHECK(linear(0, 0.0031) == "0 0.001 0.002 0.003 0.004");
  CHECK(linear(0, 46000) == "0 10k 20k 30k 40k 50k");
  CHECK(linear(0, 12.2e6) == "0 5M 10M 15M");
  CHECK(linear(7, 7) == "6 8 10 12 14");
  CHECK(logarithmic(0.003, 20) == "0.01 0.1 1 10");
  CHECK(logarithmic(1, 48) == "1 2 5 10 20 50");
  CHECK(logarithmic(1000, 3e6) == "1k 10k 100k 1M");
  CHECK(logarithmic(1e-9, 1e12) == "1e-09 1e-06 0.001 1 1k 1M 1G 1T");
}

TEST_CASE("A scale ends where it is told to", "[plot]") {
  Axis axis{"share (%)"};
  axis.low = 0;
  axis.high = 100;
  CHECK(tick_texts(axis, 40, 60) == "0 20 40 60 80 100");
  const AxisScale scale(axis, 40, 60);
  CHECK(scale.place(0) == 0.0);
  CHECK(scale.place(25) == 0.25);
  CHECK(scale.place(100) == 1.0);
  CHECK(scale.place(120) == 1.0);  // clipped
  const AxisScale log({"x", true}, 1, 100);
  CHECK(log.place(10) == Approx(0.5));
  CHECK(log.place(0) == 0.0);
  CHECK(log.place(-3) == 0.0);
}

TEST_CASE("Ticks cover what is drawn, whatever its size", "[plot]") {
  for (const double size : {1e-7, 0.3, 1.0, 7.0, 999.0, 1e6, 3.3e11}) {
    for (const double low : {0.0, 0.1, -2.5}) {
      CAPTURE(size, low);
      const AxisScale scale({"x"}, low * size, size);
      CHECK(scale.low() <= low * size);
      CHECK(scale.high() >= size);
      CHECK(scale.ticks().size() >= 3);
      CHECK(scale.ticks().size() <= 8);
      std::set<std::string> texts;
      for (const auto& tick : scale.ticks()) texts.insert(tick.text);
      CHECK(texts.size() == scale.ticks().size());
      if (low <= 0) continue;
      const AxisScale log({"x", true}, low * size / 1000, size);
      CHECK(log.low() <= low * size / 1000);
      CHECK(log.high() >= size);
      CHECK(log.ticks().size() >= 2);
      CHECK(log.ticks().size() <= 10);
    }
  }
}

TEST_CASE("Points of a line lie where the ticks say", "[plot]") {
  Chart chart("A title", {"time (s)"}, {"tokens"});
  const std::vector<std::pair<double, double>> points = {{0, 3}, {2.5, 10}, {7, -4}, {10, 1.25}};
  chart.add(line("one", points));
  const XmlDocument svg(chart.svg());
  const PixelScale x(svg, "x", 0, 10), y(svg, "y", 0, 10);
  const auto drawn = svg.within("g", {{"data-name", "one"}}, "polyline");
  REQUIRE(drawn.size() == 1);
  const auto pixels = drawn.front().points();
  REQUIRE(pixels.size() == points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    CHECK(pixels[i].first == Approx(x.at(points[i].first)).margin(0.011));
    CHECK(pixels[i].second == Approx(y.at(points[i].second)).margin(0.011));
  }
  CHECK(has_text(svg, "A title"));
  CHECK(has_text(svg, "time (s)"));
  CHECK(has_text(svg, "tokens"));
  CHECK(svg.within("g", {{"data-name", "one"}}, "path").size() == 4);  // a marker each
}

TEST_CASE("Steps hold a value until the next one", "[plot]") {
  Chart chart("steps", {"x"}, {"y"});
  Series steps{"", SeriesKind::kSteps, {Mark::at(0, 1), Mark::at(4, 3), Mark::at(10, 2)}};
  chart.add(steps);
  const XmlDocument svg(chart.svg());
  const PixelScale x(svg, "x", 0, 10), y(svg, "y", 1, 2);
  const auto pixels = svg.find("polyline").front().points();
  REQUIRE(pixels.size() == 5);
  const std::vector<std::pair<double, double>> corners = {{0, 1}, {4, 1}, {4, 3}, {10, 3}, {10, 2}};
  for (size_t i = 0; i < corners.size(); ++i) {
    CHECK(pixels[i].first == Approx(x.at(corners[i].first)).margin(0.011));
    CHECK(pixels[i].second == Approx(y.at(corners[i].second)).margin(0.011));
  }
}

TEST_CASE("Bands go along their upper edge and back along the lower", "[plot]") {
  Chart chart("bands", {"x"}, {"y"});
  chart.add({"states", SeriesKind::kBand, {Mark::band(0, 0, 1), Mark::band(10, 0, 4)}});
  chart.add({"KV", SeriesKind::kBand, {Mark::band(0, 6, 10), Mark::band(10, 5, 10)}});
  const XmlDocument svg(chart.svg());
  const PixelScale x(svg, "x", 0, 10), y(svg, "y", 0, 10);
  const auto drawn = svg.within("g", {{"data-name", "KV"}}, "polygon");
  REQUIRE(drawn.size() == 1);
  const auto pixels = drawn.front().points();
  REQUIRE(pixels.size() == 4);
  const std::vector<std::pair<double, double>> corners = {{0, 10}, {10, 10}, {10, 5}, {0, 6}};
  for (size_t i = 0; i < corners.size(); ++i) {
    CHECK(pixels[i].first == Approx(x.at(corners[i].first)).margin(0.011));
    CHECK(pixels[i].second == Approx(y.at(corners[i].second)).margin(0.011));
  }
  // Hatched, differently.
  const auto other = svg.within("g", {{"data-name", "states"}}, "polygon");
  CHECK(drawn.front()["fill"] != other.front()["fill"]);
  for (const std::string& fill : {drawn.front()["fill"], other.front()["fill"]}) {
    REQUIRE(fill.rfind("url(#", 0) == 0);
    CHECK(svg.find("pattern", {{"id", fill.substr(5, fill.size() - 6)}}).size() == 1);
  }
}

TEST_CASE("Bars stand in named rows, the first on top", "[plot]") {
  Axis rows{"cost"};
  rows.names = {"experts", "attention", "step"};
  Axis time{"time (ms)"};
  time.low = 0;
  Chart chart("waterfall", time, rows);
  chart.add({"",
             SeriesKind::kBar,
             {Mark::bar(0, 0, 4, "4 ms"), Mark::bar(1, 4, 10, "6 ms"), Mark::bar(2, 0, 10)}});
  const XmlDocument svg(chart.svg());
  const PixelScale x(svg, "x", 0, 10);
  const auto bars = svg.within("g", {{"class", "series"}}, "rect");
  REQUIRE(bars.size() == 3);
  const std::vector<std::pair<double, double>> ends = {{0, 4}, {4, 10}, {0, 10}};
  double last = 0;
  const auto names = svg.find("text", {{"class", "y"}});
  REQUIRE(names.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(bars[i].number("x") == Approx(x.at(ends[i].first)).margin(0.011));
    CHECK(bars[i].number("x") + bars[i].number("width") ==
          Approx(x.at(ends[i].second)).margin(0.021));
    const double middle = bars[i].number("y") + bars[i].number("height") / 2;
    CHECK(middle == Approx(names[i].number("y") - 4.5).margin(0.02));
    CHECK(names[i].text == rows.names[i]);
    CHECK(middle > last);
    last = middle;
  }
  CHECK(has_text(svg, "4 ms"));
  CHECK(has_text(svg, "6 ms"));
}

TEST_CASE("Lines can be told apart without colour, and the legend shows how", "[plot]") {
  Chart chart("many", {"x"}, {"y"});
  std::set<std::string> dashes, shapes;
  for (int i = 0; i < 7; ++i)
    chart.add(line("number " + std::to_string(i), {{0, i}, {1, i + 1.0}}));
  const XmlDocument svg(chart.svg());
  for (int i = 0; i < 7; ++i) {
    const std::string name = "number " + std::to_string(i);
    dashes.insert(svg.within("g", {{"data-name", name}}, "polyline").front()["stroke-dasharray"]);
    shapes.insert(svg.within("g", {{"data-name", name}}, "path").front()["d"]);
  }
  CHECK(dashes.size() == 7);
  CHECK(shapes.size() == 7);
  const auto keys = svg.find("text", {{"class", "key"}});
  REQUIRE(keys.size() == 7);
  const double width = svg.find("svg").front().number("width");
  for (const XmlElement& key : keys) CHECK(key.number("x") + 7 * 8 < width);
}

TEST_CASE("Ranges are drawn as lines through their marks", "[plot]") {
  Chart chart("seeds", {"x"}, {"y"});
  chart.add({"", SeriesKind::kPoints, {Mark::range(0, 5, 2, 10), Mark::at(10, 0)}});
  const XmlDocument svg(chart.svg());
  const PixelScale x(svg, "x", 0, 10), y(svg, "y", 0, 10);
  const auto lines = svg.within("g", {{"class", "series"}}, "line");
  REQUIRE(lines.size() == 1);
  CHECK(lines.front().number("x1") == Approx(x.at(0)).margin(0.011));
  CHECK(lines.front().number("y1") == Approx(y.at(2)).margin(0.011));
  CHECK(lines.front().number("y2") == Approx(y.at(10)).margin(0.011));
}

TEST_CASE("What cannot be drawn is left out, and names are no markup", "[plot]") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  Chart chart("a < b & \"c\"", {"x > 0"}, {"y", true});
  CHECK(chart.empty());
  CHECK(has_text(XmlDocument(chart.svg()), "no data"));
  chart.add(line("x & y", {{nan, 1}, {1, nan}, {infinity, 1}, {1, -infinity}}));
  CHECK(chart.empty());
  chart.add(line("good", {{0, 0}, {1, 1}, {2, 100}}));  // 0 lies at the low end of a log scale
  CHECK_FALSE(chart.empty());
  const std::string text = chart.svg();
  CHECK(text.find("nan") == std::string::npos);
  CHECK(text.find("inf") == std::string::npos);
  const XmlDocument svg(text);
  CHECK(has_text(svg, "a < b & \"c\""));
  CHECK(svg.within("g", {{"data-name", "good"}}, "polyline").front().points().size() == 3);
  CHECK(svg.within("g", {{"data-name", "x & y"}}, "polyline").empty());
  CHECK(chart.svg() == text);
}

TEST_CASE("A loss curve shows losses against tokens, with the held-out points", "[plot]") {
  support::TemporaryDirectory directory;
  runtime::LossCurve curve(directory.file("loss.csv"), 0);
  for (uint64_t step = 1; step <= 50; ++step)
    curve.add(runtime::LossPoint{step, step * 1000, 6.0 - 0.1 * static_cast<double>(step), 1, 1e-3,
                                 false});
  curve.add(runtime::HeldOutPoint{50000, 1.5});
  curve.write_svg(directory.file("loss.svg"));
  const XmlDocument svg(runtime::read_text(directory.file("loss.svg")));
  CHECK(has_text(svg, "loss (nats per token)"));
  const auto line = svg.within("g", {{"data-name", "training"}}, "polyline");
  REQUIRE(line.size() == 1);
  CHECK(line.front().points().size() == 50);
  CHECK(svg.within("g", {{"data-name", "held out"}}, "path").size() == 1);
  CHECK_THROWS_WITH(curve.write_svg(directory.file("none/loss.svg")),
                    directory.file("none/loss.svg") + ": cannot be written");
}
