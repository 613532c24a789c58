#include "runtime/sim/device_figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

constexpr double kFarOff = 0.2;  // a fifth

// Four digits, no exponent: the one format of every number here.
std::string shown(double value) {
  const double size = std::fabs(value);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << value;
  return out.str();
}

std::string range(const DeviceFigure& figure) {
  if (!figure.is_tested()) return "";
  if (!figure.low) return "<= " + shown(*figure.high);
  if (!figure.high) return ">= " + shown(*figure.low);
  return shown(*figure.low) + " to " + shown(*figure.high);
}

std::string error_of(const DeviceFigure& figure) {
  if (!figure.published) return "";
  std::ostringstream out;
  out << std::showpos << std::fixed << std::setprecision(1) << 100 * figure.error() << " %";
  return out.str();
}

std::string verdict(const DeviceFigure& figure) {
  if (figure.is_miss()) return "MISS";
  return figure.is_tested() ? "ok" : "";
}

std::string_view kind_of(const DeviceFigure& figure) {
  switch (figure.kind) {
    case FigureKind::kHeldOut:
      return "held out";
    case FigureKind::kCalibrated:
      return "calibrated";
    case FigureKind::kCount:
      return "count";
  }
  VERIFY(false);
}

using Row = std::array<std::string, 8>;

Row row_of(const DeviceFigure& figure) {
  const std::string published = figure.published ? shown(*figure.published) : figure.said;
  return {figure.name,      shown(figure.predicted), published,       figure.unit,
          error_of(figure), range(figure),           verdict(figure), std::string(kind_of(figure))};
}

}  // namespace

double DeviceFigure::error() const {
  return published && *published != 0 ? predicted / *published - 1 : 0;
}

bool DeviceFigure::is_miss() const {
  return is_tested() ? !passes() : std::fabs(error()) > kFarOff;
}

DeviceFigure& DeviceFigure::within(double part) {
  VERIFY(published.has_value());
  return at_least(*published * (1 - part)).at_most(*published * (1 + part));
}
DeviceFigure& DeviceFigure::at_least(double value) {
  low = value;
  return *this;
}
DeviceFigure& DeviceFigure::at_most(double value) {
  high = value;
  return *this;
}

void write_figures(std::ostream& out, const std::vector<DeviceFigure>& figures) {
  const Row heads = {"figure", "predicted", "published", "unit", "error", "accepted", "", "kind"};
  std::array<size_t, heads.size()> widths{};
  const auto measure = [&](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  const auto print = [&](const Row& row, const std::string& source) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool number = i == 1 || i == 2 || i == 4;
      out << (i == 0 ? "" : "  ") << (number ? std::right : std::left)
          << std::setw(static_cast<int>(widths[i])) << row[i];
    }
    out << "  " << source << "\n";
  };
  measure(heads);
  for (const DeviceFigure& figure : figures) measure(row_of(figure));
  std::string group;
  size_t tested = 0, passed = 0;
  for (const DeviceFigure& figure : figures) {
    if (figure.group != group) {
      out << (group.empty() ? "" : "\n") << figure.group << "\n";
      print(heads, "source and provenance");
      group = figure.group;
    }
    print(row_of(figure), figure.source);
    tested += figure.is_tested() ? 1 : 0;
    passed += figure.is_tested() && figure.passes() ? 1 : 0;
  }
  out << "\n" << passed << " of " << tested << " tested figures are within what is accepted.\n";
  out << "Misses (a failed test, or an untested figure more than a fifth off):\n";
  for (const DeviceFigure& figure : figures) {
    if (!figure.is_miss()) continue;
    out << "  " << figure.group << ": " << figure.name << ", predicted " << shown(figure.predicted)
        << (figure.published ? ", published " + shown(*figure.published) : std::string()) << "\n";
  }
}

}  // namespace runtime
