// Random values of all parameters of a network, of unit gain where they multiply.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "runtime/train/parameter_layout.hpp"

namespace support {

inline std::vector<double> random_parameters(const runtime::ParameterLayout& layout,
                                             std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (const runtime::Parameter& p : layout.all()) {
    const bool matrix = p.shape.size() == 2 && p.shape[0] > 1;
    const double scale = matrix ? 1.2 / std::sqrt(static_cast<double>(p.shape[1])) : 0.3;
    const bool norm = p.name.find("norm") != std::string::npos;
    for (size_t i = 0; i < p.count; ++i)
      values.push_back((norm ? 1 : 0) + (norm ? 0.2 : scale) * normal(random));
  }
  return values;
}

}  // namespace support
