// What this machine reads, updates and multiplies at most: the ceilings of the other benchmarks.
// Passes of three lengths, since a shared machine gives more for a moment than for a whole step.
//   bench-ceilings [threads]      without an argument: one thread, then all cores
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernels/ceilings.hpp"
#include "kernels/ops.hpp"

constexpr int kPasses = 20;  // of each length; the best counts

int main(int argc, char** argv) {
  std::vector<unsigned> counts;
  if (argc > 1) {
    counts = {static_cast<unsigned>(std::max(1, std::atoi(argv[1])))};
  } else {
    counts = {1, std::max(1u, std::thread::hardware_concurrency())};
  }
  std::printf("target %s\n", kernels::cpu_target_name());
  std::printf("threads   a pass s   read GB/s   read+write GB/s   fp32 multiply-add GF/s\n");
  for (const unsigned threads : counts) {
    kernels::Ceilings ceilings(threads);
    for (const double pass_s : {0.0005, 0.01, 0.06}) {
      kernels::CeilingRates rates;
      for (int i = 0; i < kPasses; ++i) rates.keep_best(ceilings.measure(0, pass_s));
      std::printf("%7u %10g %11.1f %17.1f %24.1f\n", threads, pass_s, rates.read / 1e9,
                  rates.update / 1e9, rates.flops / 1e9);
    }
  }
  return 0;
}
