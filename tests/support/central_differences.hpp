// Gradients against central differences.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "runtime/train/parameter_layout.hpp"

namespace support {

// Compares up to `most` elements of every learned parameter: the whole of small ones, random
// elements of others. `values` are what loss() depends on; they are as before afterwards.
template <class Loss>
void check_differences(const std::vector<runtime::Parameter>& parameters,
                       std::vector<double>& values, const std::vector<double>& grads, size_t most,
                       const Loss& loss) {
  std::mt19937 random(11);
  for (const runtime::Parameter& p : parameters) {
    if (!p.learned) continue;
    for (size_t n = 0; n < std::min(most, p.count); ++n) {
      const size_t at = p.offset + (p.count <= most ? n : random() % p.count);
      const double kept = values[at], step = 1e-6;
      values[at] = kept + step;
      const double above = loss();
      values[at] = kept - step;
      const double below = loss();
      values[at] = kept;
      const double expected = (above - below) / (2 * step);
      INFO(p.name << " [" << at - p.offset << "]");
      CHECK(grads[at] == Approx(expected).epsilon(2e-5).margin(2e-8));
    }
  }
}

}  // namespace support
