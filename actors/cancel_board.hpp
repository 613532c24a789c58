// Requests whose client is gone, seen by the scheduler before it builds its next plan. The abort
// also travels by message; the board only makes it early: it is read after the event and just
// before the plans that the event leads to are built, so none that is begun after post() returned
// names the request. Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/scheduler.hpp"

namespace actors {

class CancelBoard {
 public:
  void post(runtime::RequestId request, kernels::ErrorCode code) {
    const std::lock_guard lock(mutex_);
    posted_.push_back({request, code});
    any_.store(true, std::memory_order_release);
  }

  std::vector<runtime::Abort> take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_release);
    return std::exchange(posted_, {});
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<runtime::Abort> posted_;
};

}  // namespace actors
