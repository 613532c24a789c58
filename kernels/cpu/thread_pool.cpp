#include "kernels/cpu/thread_pool.hpp"

#include "kernels/base/verify.hpp"

namespace kernels::cpu {
namespace {

constexpr uint32_t kOpen = 0x80000000u;
constexpr int kSpins =
    2000;  // about 30 us of pauses: longer than the gap between two operations of a layer
constexpr int kYields = 300;  // at least 100 us: the gap between two steps, left to who needs it

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when `value` differs from `old`: spins a bounded time, then yields, then sleeps.
uint32_t wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
  }
  for (int i = 0; i < kYields; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads) {
  VERIFY(threads >= 1);
  workers_.reserve(threads - 1);
  for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(size_t count, Call call, void* body) {
  if (count <= 1 || workers_.empty()) {
    for (size_t i = 0; i < count; ++i) call(body, i, 0);
    return;
  }
  count_ = count;
  call_ = call;
  body_ = body;
  next_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  work(0);
  uint32_t gate = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (gate != 0) gate = wait_for_change(gate_, gate);
}

void ThreadPool::work(unsigned thread) {
  for (;;) {
    const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    call_(body_, index, thread);
  }
}

bool ThreadPool::join_loop() {
  uint32_t gate = gate_.load(std::memory_order_relaxed);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire,
                                    std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::leave_loop() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    gate_.notify_one();  // the caller waits with the gate shut
}

void ThreadPool::serve(unsigned thread) {
  uint32_t seen = 0;
  for (;;) {
    seen = wait_for_change(epoch_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (join_loop()) {
      work(thread);
      leave_loop();
    }
  }
}

}  // namespace kernels::cpu
