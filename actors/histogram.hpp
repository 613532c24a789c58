// How often values fell into which range: what /metrics shows of a duration.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace actors {

struct Histogram {
  std::vector<double> bounds;    // upper bounds, ascending
  std::vector<uint64_t> counts;  // bounds.size() + 1
  double sum = 0;

  void observe(double value) {
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), value);
    ++counts[static_cast<size_t>(bound - bounds.begin())];
    sum += value;
  }
};

}  // namespace actors
