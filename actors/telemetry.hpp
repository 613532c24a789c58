// What the actors measured, as one thread-safe value that /metrics can ask for at any time.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "actors/clock.hpp"
#include "actors/service.hpp"

namespace actors {

// Invariant: counters only grow. Gauges are the last published values.
class Telemetry {
 public:
  explicit Telemetry(Clock clock);

  void first_token(double seconds);  // since arrival
  void next_token(double seconds);   // since the token before, per choice
  void finished(double seconds);     // end to end, requests that ended well
  void scheduled(double seconds);    // from arrival to the first plan that names a sequence
  void publish(const runtime::SchedulerStats& stats);
  void publish(const memory::CacheOwners& pools, const memory::CacheCounters& cache);
  // One step of the worker. `starved`: there was work at all times since the step before, so the
  // time between them is the worker's idle time; without work it is nobody's.
  void step(uint64_t start_ns, uint64_t end_ns, bool starved);

  // Everything but what the front desk knows (rejected_total, open_requests).
  ServiceMetrics snapshot() const;

 private:
  struct Sample {
    uint64_t time_ns = 0, tokens = 0;
  };
  double throughput() const;

  Clock clock_;
  mutable std::mutex mutex_;
  ServiceMetrics values_;
  uint64_t last_end_ns_ = 0;
  std::deque<Sample> samples_;  // of generation_tokens_total, over the window
};

}  // namespace actors
