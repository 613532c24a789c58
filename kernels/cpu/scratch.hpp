// Grow-only memory for intermediate values, aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace kernels::cpu {

class Scratch {
 public:
  // Room for `count` values of T. The contents are undefined, and earlier pointers die when it
  // grows.
  template <class T = float>
  T* reserve(size_t count) {
    const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    if (bytes > capacity_) grow(bytes);
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };

  void grow(size_t bytes) {
    data_.reset(std::aligned_alloc(64, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    capacity_ = bytes;
  }

  std::unique_ptr<void, Free> data_;
  size_t capacity_ = 0;
};

}  // namespace kernels::cpu
