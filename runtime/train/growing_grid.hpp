// Scratch rows of any number type.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/base/row_step.hpp"
#include "kernels/train/gradient_ops.hpp"

namespace runtime {

// Grow-only rows; the contents are undefined, and earlier views die when it grows.
template <class Real>
class GrowingGrid {
 public:
  kernels::Grid<Real> take(size_t rows, size_t width) {
    const size_t ld = kernels::row_step(width);
    if (data_.size() < rows * ld) data_.resize(rows * ld);
    return {data_.data(), ld};
  }

 private:
  std::vector<Real> data_;
};

}  // namespace runtime
