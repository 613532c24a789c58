// Rows to inputs-first order, as the register tiles of a matrix product read them.
#pragma once

#include <cstddef>

namespace kernels::cpu {

// target[k * count + r] = row[r][k] for k < width; count is 1..kGroupRows.
void interleave_rows(const float* const* row, size_t count, size_t width, float* target);

}  // namespace kernels::cpu
