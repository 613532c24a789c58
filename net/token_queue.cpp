#include "net/token_queue.hpp"

#include <utility>

namespace net {

TokenQueue::TokenQueue(size_t events_max, std::function<void()> wake)
    : events_max_(events_max), wake_(std::move(wake)) {}

bool TokenQueue::push(actors::SinkEvent event) {
  const std::lock_guard lock(mutex_);
  if (!wake_) return false;
  if (events_.size() >= events_max_) {
    overflowed_ = true;
    wake_();
    wake_ = nullptr;
    return false;
  }
  events_.push_back(std::move(event));
  if (events_.size() == 1) wake_();
  return true;
}

void TokenQueue::drain(std::vector<actors::SinkEvent>& events) {
  events.clear();  // outside the lock: destroying values is not the actors' business
  const std::lock_guard lock(mutex_);
  events.swap(events_);
}

bool TokenQueue::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

void TokenQueue::close() {
  std::vector<actors::SinkEvent> dropped;
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  dropped.swap(events_);
}

}  // namespace net
