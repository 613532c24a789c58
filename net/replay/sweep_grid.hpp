// The points of a sweep: every combination of the values that some settings take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/replay/scenario_overrides.hpp"

namespace net {

struct GridAxis {
  std::string key;
  std::vector<std::string> values;
  bool operator==(const GridAxis&) const = default;
};

// "KEY=V1,V2,...": commas within brackets, braces and quotes are part of a value. Throws
// std::invalid_argument.
GridAxis parse_grid_axis(std::string_view text);

// The last axis varies fastest. Throws std::invalid_argument for a key or a value that comes twice.
std::vector<std::vector<Override>> grid_points(const std::vector<GridAxis>& axes);

}  // namespace net
