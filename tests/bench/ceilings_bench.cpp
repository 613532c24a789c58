// What this machine reads, updates and multiplies at most: the ceilings of the other benchmarks.
//   bench-ceilings [threads]      without an argument: one thread, then all cores
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernels/ceilings.hpp"
#include "kernels/ops.hpp"

int main(int argc, char** argv) {
  std::vector<unsigned> counts;
  if (argc > 1) {
    counts = {static_cast<unsigned>(std::max(1, std::atoi(argv[1])))};
  } else {
    counts = {1, std::max(1u, std::thread::hardware_concurrency())};
  }
  std::printf("target %s\n", kernels::cpu_target_name());
  std::printf("threads   read GB/s   read+write GB/s   fp32 multiply-add GF/s\n");
  for (const unsigned threads : counts) {
    kernels::Ceilings ceilings(threads);
    const kernels::CeilingRates rates = ceilings.measure(2);
    std::printf("%7u %11.1f %17.1f %24.1f\n", threads, rates.read / 1e9, rates.update / 1e9,
                rates.flops / 1e9);
  }
  return 0;
}
