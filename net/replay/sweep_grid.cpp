#include "net/replay/sweep_grid.hpp"

#include <set>
#include <stdexcept>

namespace net {
namespace {

std::vector<std::string> values_of(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

}  // namespace

GridAxis parse_grid_axis(std::string_view text) {
  const size_t equals = text.find('=');
  GridAxis axis;
  if (equals != text.npos) {
    axis.key = text.substr(0, equals);
    axis.values = values_of(text.substr(equals + 1));
  }
  bool is_whole = !axis.key.empty();
  for (const std::string& value : axis.values) is_whole = is_whole && !value.empty();
  if (!is_whole) {
    throw std::invalid_argument(
        "\"" + std::string(text) +
        "\" is no axis of a grid; expected KEY=VALUE,VALUE,..., as in server.layout=TP8,TP8-DCP8");
  }
  return axis;
}

std::vector<std::vector<Override>> grid_points(const std::vector<GridAxis>& axes) {
  std::vector<std::vector<Override>> points(1);
  std::set<std::string> keys;
  for (const GridAxis& axis : axes) {
    if (!keys.insert(axis.key).second)
      throw std::invalid_argument("grid: " + axis.key + " is there twice");
    if (std::set<std::string>(axis.values.begin(), axis.values.end()).size() !=
        axis.values.size()) {
      throw std::invalid_argument("grid: " + axis.key + " has a value twice");
    }
    std::vector<std::vector<Override>> longer;
    for (const std::vector<Override>& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back({axis.key, value});
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace net
