// Random numbers for weights: a value depends only on (seed, tensor name, index), so the order in
// which tensors are written is irrelevant. Built from integers and exact floating-point steps
// alone: the same on every machine and standard library.
#pragma once

#include <cstdint>
#include <string_view>

namespace runtime {

class CounterRandom {
 public:
  CounterRandom(uint64_t seed, std::string_view name) : key_(mix(seed)) {
    for (const char letter : name) key_ = mix(key_ ^ static_cast<unsigned char>(letter));
  }

  uint64_t bits(uint64_t index) const { return mix(key_ + index * 0x9e3779b97f4a7c15u); }

  double uniform(uint64_t index) const {  // [0, 1)
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  double uniform(uint64_t index, double low, double high) const {
    return low + (high - low) * uniform(index);
  }

  // Close to a standard normal: the sum of twelve 16-bit uniform numbers, whose variances of 1/12
  // add up to one.
  double normal(uint64_t index) const {
    int64_t sum = 0;
    for (uint64_t word = 0; word < 3; ++word) {
      uint64_t four = bits(3 * index + word);
      for (int i = 0; i < 4; ++i, four >>= 16) sum += static_cast<int64_t>(four & 0xffffu);
    }
    return (static_cast<double>(sum) - 12 * 32767.5) * 0x1p-16;
  }

 private:
  static uint64_t mix(uint64_t x) {  // a bijection whose output bits each depend on all input bits
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
  }

  uint64_t key_;
};

}  // namespace runtime
