// A float buffer on a 64-byte boundary whose pages cost nothing until touched. Invariant: data()
// never moves.
#pragma once

#include <cstddef>

#include "kernels/base/aligned_memory.hpp"
#include "kernels/base/row_step.hpp"
#include "kernels/ops.hpp"

namespace runtime {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(size_t count)
      : memory_(kernels::allocate_aligned(count * sizeof(float))) {}
  float* data() const { return static_cast<float*>(memory_.get()); }

 private:
  kernels::AlignedMemory memory_;
};

// Scratch rows [rows, width] of the forward pass, allocated once.
class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(size_t rows, size_t width) : ld_(kernels::row_step(width)), floats_(rows * ld_) {}
  kernels::MutableRows rows() const { return {floats_.data(), ld_}; }
  kernels::MutableRows columns(size_t first) const { return {floats_.data() + first, ld_}; }

 private:
  size_t ld_ = 0;
  AlignedFloats floats_;
};

}  // namespace runtime
