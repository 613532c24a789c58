// Loops over rows on a pool, several rows to a task.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/thread_pool.hpp"

namespace kernels::cpu {

// Less work than this is done before another thread has woken.
constexpr size_t kSerialFloats = 8192;

// fn(row, thread) for every row; serially where waking threads would cost more.
template <class Fn>
void for_rows(ThreadPool& pool, size_t rows, size_t floats_per_row, const Fn& fn) {
  if (rows * floats_per_row < 2 * kSerialFloats) {
    for (size_t row = 0; row < rows; ++row) fn(row, 0u);
    return;
  }
  const size_t step = std::max<size_t>(1, kSerialFloats / floats_per_row);
  pool.parallel_for((rows + step - 1) / step, [&](size_t task, unsigned thread) {
    const size_t end = std::min(rows, (task + 1) * step);
    for (size_t row = task * step; row < end; ++row) fn(row, thread);
  });
}

}  // namespace kernels::cpu
