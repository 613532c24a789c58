// How far apart the rows of a matrix of intermediate values lie.
#pragma once

#include <cstddef>

namespace kernels {

// Numbers from one row of `width` floats to the next. Rows start on cache lines, so that two
// threads never share one, and are an odd number of lines apart, so that a column of rows does not
// fall into one set of a cache.
constexpr size_t row_step(size_t width) {
  constexpr size_t kLine = 16;  // floats
  return ((width + kLine - 1) / kLine | 1) * kLine;
}

}  // namespace kernels
