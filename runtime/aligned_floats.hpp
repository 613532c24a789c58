// A float buffer on a 64-byte boundary whose pages cost nothing until touched. Invariant: data()
// never moves.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/ops.hpp"

namespace runtime {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(size_t count) : data_(allocate(count)) {}
  float* data() const { return data_.get(); }

 private:
  static float* allocate(size_t count) {
    const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    void* data = std::aligned_alloc(64, bytes == 0 ? 64 : bytes);
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<float*>(data);
  }
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
};

// Scratch rows [rows, width] of the forward pass, allocated once.
class RowBuffer {
 public:
  RowBuffer() = default;
  // Rows start on cache lines, so that two threads never share one.
  RowBuffer(size_t rows, size_t width) : ld_((width + 15) / 16 * 16), floats_(rows * ld_) {}
  kernels::MutableRows rows() const { return {floats_.data(), ld_}; }
  kernels::MutableRows columns(size_t first) const { return {floats_.data() + first, ld_}; }

 private:
  size_t ld_ = 0;
  AlignedFloats floats_;
};

}  // namespace runtime
