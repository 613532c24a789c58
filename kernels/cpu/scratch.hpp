// Grow-only memory for intermediate values, aligned to a cache line.
#pragma once

#include <cstddef>

#include "kernels/base/aligned_memory.hpp"

namespace kernels::cpu {

class Scratch {
 public:
  // Room for `count` values of T. The contents are undefined, and earlier pointers die when it
  // grows.
  template <class T = float>
  T* reserve(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes > capacity_) {
      data_ = allocate_aligned(bytes);
      capacity_ = bytes;
    }
    return static_cast<T*>(data_.get());
  }

 private:
  AlignedMemory data_;
  size_t capacity_ = 0;
};

}  // namespace kernels::cpu
