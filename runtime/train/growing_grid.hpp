// Scratch rows of any number type.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/train/gradient_ops.hpp"

namespace runtime {

// Grow-only rows; the contents are undefined, and earlier views die when it grows.
template <class Real>
class GrowingGrid {
 public:
  kernels::Grid<Real> take(size_t rows, size_t width) {
    const size_t ld = ((width + 15) / 16 | 1) * 16;  // an odd number of cache lines
    if (data_.size() < rows * ld) data_.resize(rows * ld);
    return {data_.data(), ld};
  }

 private:
  std::vector<Real> data_;
};

}  // namespace runtime
