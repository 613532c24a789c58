#include "runtime/sim/published_figure.hpp"

#include <cmath>
#include <limits>

namespace runtime {
namespace {

constexpr double kMost = 1e15;

std::optional<double> number(TomlFields& in, std::string_view key) {
  double value = std::numeric_limits<double>::quiet_NaN();
  in.number(key, value, -kMost, kMost);
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

}  // namespace

DeviceFigure read_published(TomlFields& in) {
  DeviceFigure figure;
  in.require("name", "what the figure is called");
  in.text("name", figure.name);
  figure.published = number(in, "published");
  in.text("said", figure.said);
  in.text("source", figure.source);
  in.one_of("provenance", figure.kind, {"held out", "calibrated", "count"});
  const auto part = number(in, "within"), low = number(in, "at-least"),
             high = number(in, "at-most");
  if (part && !figure.published) in.fail("within", "needs `published`, of which it is a part");
  if (part) figure.within(*part);
  if (low) figure.at_least(*low);
  if (high) figure.at_most(*high);
  return figure;
}

}  // namespace runtime
