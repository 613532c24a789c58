#include "net/token_queue.hpp"

#include <iterator>
#include <utility>

#include "runtime/trace.hpp"

namespace net {
namespace {

size_t bytes_of(const actors::Delta& delta) {
  size_t bytes = delta.text.size() + delta.token_ids.size() * sizeof(runtime::TokenId);
  for (const auto& piece : delta.chat) bytes += sizeof(piece) + piece.text.size();
  for (const auto& position : delta.logprobs) {
    bytes += sizeof(position) + position.top.size() * sizeof(position.chosen);
  }
  return bytes;
}

template <class T>
void append(std::vector<T>& all, std::vector<T>& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

TokenQueue::TokenQueue(size_t bytes_max, std::function<void()> wake)
    : bytes_max_(bytes_max), wake_(std::move(wake)) {}

bool TokenQueue::push(actors::SinkEvent event) {
  const std::lock_guard lock(mutex_);
  if (!wake_) return false;
  if (auto* delta = std::get_if<actors::Delta>(&event)) {
    if (bytes_ >= bytes_max_) {
      overflowed_ = true;
      wake_();
      wake_ = nullptr;
      return false;
    }
    bytes_ += bytes_of(*delta);
    if (first_delta_ns_ == 0) first_delta_ns_ = runtime::Trace::global().now_ns();
    if (join(*delta)) return true;
    if (delta->choice >= delta_at_.size()) delta_at_.resize(size_t{delta->choice} + 1);
    delta_at_[delta->choice] = events_.size() + 1;
  }
  events_.push_back(std::move(event));
  if (events_.size() == 1) wake_();
  return true;
}

// What waits between the two belongs to other choices: a choice's Deltas come before its end.
bool TokenQueue::join(actors::Delta& delta) {
  if (delta.choice >= delta_at_.size() || delta_at_[delta.choice] == 0) return false;
  auto& waiting = std::get<actors::Delta>(events_[delta_at_[delta.choice] - 1]);
  waiting.text += delta.text;
  append(waiting.chat, delta.chat);
  append(waiting.token_ids, delta.token_ids);
  append(waiting.logprobs, delta.logprobs);
  append(waiting.prompt_logprobs, delta.prompt_logprobs);
  return true;
}

uint64_t TokenQueue::drain(std::vector<actors::SinkEvent>& events) {
  events.clear();  // outside the lock: destroying values is not the actors' business
  const std::lock_guard lock(mutex_);
  events.swap(events_);
  delta_at_.clear();
  bytes_ = 0;
  return std::exchange(first_delta_ns_, 0);
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
  delta_at_.clear();
  bytes_ = 0;
}

}  // namespace net
