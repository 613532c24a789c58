#include "kernels/cpu/thread_pool.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

using kernels::cpu::ThreadPool;

TEST_CASE("parallel_for visits every index exactly once and waits for all of them",
          "[kernels][property]") {
  for (const unsigned threads : {1u, 2u, 3u, 5u}) {
    ThreadPool pool(threads);
    REQUIRE(pool.size() == threads);
    for (size_t count = 0; count < 300; ++count) {
      std::vector<int> visits(count,
                              0);  // not atomic: two visits of one index would be a data race, too
      pool.parallel_for(count, [&](size_t i, unsigned thread) {
        if (thread < threads) ++visits[i];
      });
      REQUIRE(visits == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("A pool survives thousands of short loops back to back", "[kernels]") {
  ThreadPool pool(3);
  uint64_t total = 0;
  for (int loop = 0; loop < 20000; ++loop) {
    std::atomic<uint64_t> sum{0};
    pool.parallel_for(4, [&](size_t i, unsigned) { sum.fetch_add(i, std::memory_order_relaxed); });
    total += sum.load();
  }
  CHECK(total == 20000u * 6u);
}

TEST_CASE("A pool that never ran a loop shuts down", "[kernels]") {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
}
