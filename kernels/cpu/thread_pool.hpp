// A fixed set of threads that run index loops together with the calling thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace kernels::cpu {

// Invariant: outside parallel_for no worker touches a loop's data. One thread calls parallel_for at
// a time.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);  // >= 1; the caller is one of them
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls fn(index, thread) once for each index < count, thread < size(); returns when all are
  // done. Which thread takes which index is not fixed, so fn's result must not depend on it.
  template <class Fn>
  void parallel_for(size_t count, Fn&& fn) {
    using Body = std::remove_reference_t<Fn>;
    run(
        count,
        [](void* body, size_t index, unsigned thread) {
          (*static_cast<Body*>(body))(index, thread);
        },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  using Call = void (*)(void* body, size_t index, unsigned thread);

  void run(size_t count, Call call, void* body);
  void work(unsigned thread);
  void serve(unsigned thread);
  bool join_loop();
  void leave_loop();

  // The current loop; written only while the gate is shut and empty.
  size_t count_ = 0;
  Call call_ = nullptr;
  void* body_ = nullptr;

  alignas(64) std::atomic<size_t> next_{0};
  // kOpen while workers may join, plus the number that have. A worker that wakes late finds the
  // gate shut and the loop finished without it, so a preempted thread costs nothing.
  alignas(64) std::atomic<uint32_t> gate_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // one more for each loop; workers sleep on it
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace kernels::cpu
