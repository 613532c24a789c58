// Processor time of this process: what is measured where other programs use the machine too.
#pragma once

#include <ctime>

namespace kernels {

// Seconds of all threads, in user and system mode, since the process began.
inline double process_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace kernels
