// The process's one clock for measuring and for deadlines: nanoseconds, never set back.
#pragma once

#include <chrono>
#include <cstdint>

namespace kernels {

inline uint64_t steady_now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace kernels
