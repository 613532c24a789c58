// Sink events on their way from actor threads to one connection. New output of a choice joins what
// already waits for that choice, so a slow reader gets fewer and larger pieces. The first event
// after the connection emptied it wakes the connection: a burst costs one wake-up.
// Invariant: after close() or an overflow no event enters and the wake function is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/service.hpp"

namespace net {

class TokenQueue {
 public:
  // `wake` is called on the pushing thread and must not block. `bytes_max`: of output that waits;
  // what a prompt brings along does not count, the request bounds it.
  TokenQueue(size_t bytes_max, std::function<void()> wake);

  bool push(actors::SinkEvent event);  // any thread; false: closed or full
  // Replaces the content of `events`. When the first Delta among them came; 0: none, or no trace.
  uint64_t drain(std::vector<actors::SinkEvent>& events);
  bool overflowed() const;
  void close();

 private:
  // False: nothing of that choice waits.
  bool join(actors::Delta& delta);

  const size_t bytes_max_;
  mutable std::mutex mutex_;
  std::vector<actors::SinkEvent> events_;
  std::vector<size_t> delta_at_;  // by choice: 1 + where its Delta lies in events_; 0: none does
  size_t bytes_ = 0;              // about what the Deltas in events_ hold
  uint64_t first_delta_ns_ = 0;
  // Empty: closed. It names the io thread's context, which late pushes must not outlive.
  std::function<void()> wake_;
  bool overflowed_ = false;
};

}  // namespace net
