// What a benchmark reads off a server process.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <fstream>
#include <stdexcept>

namespace bench {

inline double load_average() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

// User and system seconds that all threads of the process have used.
inline double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    throw std::runtime_error("cannot read the CPU time of the server");
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace bench
