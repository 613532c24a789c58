// Time as a value that a test can replace: nanoseconds of a steady clock.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/base/steady_clock.hpp"

namespace actors {

using Clock = std::function<uint64_t()>;

using kernels::steady_now_ns;

inline double seconds_between(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0.0;
}

}  // namespace actors
