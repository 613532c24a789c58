// What the kernel benchmarks share: passes against the ceiling that binds them, and random inputs.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/ceilings.hpp"
#include "kernels/ops.hpp"

namespace bench {

// What one pass does at least; the ceiling that makes it slowest binds.
struct Work {
  double read_bytes = 0;
  double update_bytes = 0;  // read and written in place, both counted
  double flops = 0;
};

// One run of a benchmark program. With one thread times are the thread's CPU time, so that a busy
// machine's other work counts less.
class Run {
 public:
  // `bench-NAME [threads]`; all cores without an argument.
  Run(int argc, char** argv)
      : threads_(argc > 1 ? static_cast<unsigned>(std::max(1, std::atoi(argv[1])))
                          : std::max(1u, std::thread::hardware_concurrency())),
        ceilings_(threads_, [clock = clock_for(threads_)] { return seconds(clock); }),
        ops_(kernels::make_cpu_ops(threads_)) {
    std::printf("target %s, %u threads; fractions are of ceilings measured between the passes\n",
                kernels::cpu_target_name(), threads_);
    print_load();
  }
  ~Run() { print_load(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  kernels::Ops& ops() { return *ops_; }
  unsigned threads() const { return threads_; }

  // Repeats a short pass for about `budget_s` and prints a line. The best pass is the one that the
  // machine disturbed least.
  void report(const std::string& name, const Work& work, const std::function<void()>& pass,
              double budget_s = 0.4) {
    const clockid_t clock = clock_for(threads_);
    pass();
    std::vector<double> times;
    kernels::CeilingRates rates;
    double since_ceilings = budget_s;
    for (double total = 0; total < budget_s || times.size() < 5; total += times.back()) {
      if (since_ceilings > 0.05) {
        rates.keep_best(ceilings_.measure(0.03, times.empty() ? 0 : times.back()));
        since_ceilings = 0;
      }
      const double begin = seconds(clock);
      pass();
      times.push_back(seconds(clock) - begin);
      since_ceilings += times.back();
    }
    std::sort(times.begin(), times.end());
    print_line(name, work, rates, times.front(), times[times.size() / 2]);
  }

 private:
  static clockid_t clock_for(unsigned threads) {
    return threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  }
  static double seconds(clockid_t clock) {
    timespec t;
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  static void print_load() {
    double load[3] = {};
    if (::getloadavg(load, 3) == 3)
      std::printf("load average %.2f %.2f %.2f\n", load[0], load[1], load[2]);
  }
  static void print_line(const std::string& name, const Work& work,
                         const kernels::CeilingRates& rates, double best, double median) {
    struct Ceiling {
      double amount, rate;
      const char* unit;
    };
    Ceiling binding = {work.flops, rates.flops, "GF/s multiply-add"};
    const auto least_s = [](const Ceiling& c) { return c.amount / c.rate; };
    for (const Ceiling& other : {Ceiling{work.read_bytes, rates.read, "GB/s read"},
                                 Ceiling{work.update_bytes, rates.update, "GB/s read and written"}})
      if (least_s(other) > least_s(binding)) binding = other;
    std::printf("%-36s best %9.3f ms  median %9.3f ms  %7.1f = %.2f of %.1f %s\n", name.c_str(),
                best * 1e3, median * 1e3, binding.amount / best / 1e9, least_s(binding) / best,
                binding.rate / 1e9, binding.unit);
    std::fflush(stdout);
  }

  unsigned threads_;
  kernels::Ceilings ceilings_;
  std::unique_ptr<kernels::Ops> ops_;
};

inline std::vector<float> floats(size_t count, float scale = 1.0f) {
  static std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(rng);
  return values;
}

// `count` copies of an n x k matrix: so many that a pass over all of them does not fit a cache.
inline std::vector<kernels::MatrixPtr> matrices(kernels::Ops& ops, kernels::DType dtype, size_t n,
                                                size_t k, size_t count) {
  const bool packed = dtype == kernels::DType::kMXFP4;
  std::vector<uint8_t> bytes(packed ? n * k / 2 : n * k * sizeof(uint16_t));
  const std::vector<uint8_t> scale(n * k / 32, 120);
  std::mt19937 rng(2);
  if (packed) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  } else {
    for (size_t i = 0; i < n * k; ++i) {
      const uint16_t bits = kernels::float_to_bf16(static_cast<float>(rng() % 2001) / 1000 - 1);
      std::memcpy(&bytes[2 * i], &bits, sizeof bits);
    }
  }
  std::vector<kernels::MatrixPtr> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(ops.pack({dtype, bytes.data(), scale.data(), n, k, k, 1}));
  return result;
}

}  // namespace bench
