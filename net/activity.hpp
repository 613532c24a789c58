// Counts what is going on, so that a shutdown can wait for it to end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace net {

class Activity {
 public:
  // One thing going on, for as long as it lives.
  class Guard {
   public:
    explicit Guard(Activity& activity) : activity_(activity) { activity_.add(1); }
    ~Guard() { activity_.add(-1); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Activity& activity_;
  };

  uint32_t count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(count_);
  }
  // False: the deadline came first.
  bool wait_for_none(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return none_.wait_until(lock, deadline, [this] { return count_ == 0; });
  }

 private:
  void add(int64_t change) {
    const std::lock_guard lock(mutex_);
    count_ += change;
    if (count_ == 0) none_.notify_all();  // under the lock: the waiter may destroy us next
  }

  mutable std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

}  // namespace net
