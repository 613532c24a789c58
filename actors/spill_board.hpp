// Where the worker tells that what is cached was written to its file. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/spill.hpp"

namespace actors {

class SpillBoard {
 public:
  void post(runtime::SpillReport report) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
    changed_.notify_all();
  }
  // Empty: it was not written in time.
  std::optional<runtime::SpillReport> wait(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return report_.has_value(); });
    return std::exchange(report_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<runtime::SpillReport> report_;
};

}  // namespace actors
