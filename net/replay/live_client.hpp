// A client of a live server: sends one request, hears its answer token by token, comes again when
// it is told to, and leaves early when it is to.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "net/replay/answer_event.hpp"
#include "net/replay/http_ask.hpp"
#include "net/replay/http_stream.hpp"
#include "net/replay/replay_metrics.hpp"

namespace net {

// Nanoseconds since it was made.
class ReplayClock {
 public:
  using TimePoint = HttpStream::TimePoint;
  uint64_t now_ns() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start_).count());
  }
  TimePoint at(uint64_t ns) const { return start_ + std::chrono::nanoseconds(ns); }

 private:
  using Clock = std::chrono::steady_clock;
  TimePoint start_ = Clock::now();
};

struct LivePlay {
  PlayRecord record;
  uint32_t leaves_after = 0;  // tokens; 0: the client stays
  uint64_t deadline_ns = 0;   // 0: none
  uint32_t retries = 0;       // times it came again
  std::string error;          // why it failed
};

class LiveClient {
 public:
  // Both must outlive it.
  LiveClient(const HttpTarget& target, uint32_t retries_max, const ReplayClock& clock)
      : target_(target), retries_max_(retries_max), clock_(clock) {}

  // Fills in what became of the request. `heard` is called for every token. Throws nothing.
  using Heard = std::function<void(PlayRecord& record, uint64_t now_ns)>;
  asio::awaitable<void> play(const HttpAsk& ask, LivePlay& play, const Heard& heard) const;

 private:
  struct Try {  // what came of one
    bool again = false;
    std::chrono::milliseconds wait{0};
  };
  asio::awaitable<Try> once(const HttpAsk& ask, LivePlay& play, const Heard& heard) const;
  asio::awaitable<void> listen(HttpStream& stream, LivePlay& play, const Heard& heard) const;
  HttpStream::TimePoint deadline(const LivePlay& play) const;

  const HttpTarget& target_;
  uint32_t retries_max_;
  const ReplayClock& clock_;
};

}  // namespace net
