// Sink events on their way from actor threads to one connection. Bounded; the first event after the
// connection emptied it wakes the connection, so a burst costs one wake-up. Invariant: after
// close() or an overflow no event enters and the wake function is gone.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/service.hpp"

namespace net {

class TokenQueue {
 public:
  // `wake` is called on the pushing thread and must not block.
  TokenQueue(size_t events_max, std::function<void()> wake);

  bool push(actors::SinkEvent event);                  // any thread; false: closed or full
  void drain(std::vector<actors::SinkEvent>& events);  // replaces the content of `events`
  bool overflowed() const;
  void close();

 private:
  const size_t events_max_;
  mutable std::mutex mutex_;
  std::vector<actors::SinkEvent> events_;
  std::function<void()> wake_;  // empty: closed. It names the io thread's context, which late
                                // pushes must not outlive.
  bool overflowed_ = false;
};

}  // namespace net
