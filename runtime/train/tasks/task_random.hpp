// The random choices of one generated example: a sequence that depends on its key alone, the same
// on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/counter_random.hpp"

namespace runtime {

class TaskRandom {
 public:
  TaskRandom(uint64_t seed, std::string_view stream, uint64_t index)
      : random_(CounterRandom(seed, stream).bits(index), "task") {}

  size_t below(size_t count) {
    VERIFY(count > 0);
    return static_cast<size_t>(random_.bits(next_++) % count);
  }
  int between(int low, int high) {  // both may come
    return low + static_cast<int>(below(static_cast<size_t>(high - low + 1)));
  }
  bool percent(int chance) { return between(0, 99) < chance; }

  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  CounterRandom random_;
  uint64_t next_ = 0;
};

}  // namespace runtime
