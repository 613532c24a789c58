// What a replay looks like over its time: how the arena is divided, who runs and who waits, and
// the tokens of each interval. Memory is bounded: when all points are taken, neighbours are joined
// and intervals are twice as long from then on.
//
// Invariant: points lie one interval apart, the first one interval after 0, but for the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace net {

// At one moment. Bytes of a rank's arena: all but `host` add up to it.
struct ReplayGauges {
  uint64_t running_states = 0, cached_states = 0;  // cached: the prefix tree's
  uint64_t running_kv = 0, cached_kv = 0;
  uint64_t free = 0;
  uint64_t host = 0;  // of host memory
  uint32_t running = 0, queued = 0;
  bool operator==(const ReplayGauges&) const = default;
};

struct TimelinePoint {
  uint64_t begin_ns = 0, end_ns = 0;
  ReplayGauges at_end;
  uint64_t prompt_tokens = 0, output_tokens = 0;  // computed and generated in [begin_ns, end_ns)
  bool operator==(const TimelinePoint&) const = default;
};

class ReplayTimeline {
 public:
  static constexpr size_t kPointsMax = 1024;
  static constexpr uint64_t kFirstIntervalNs = 1'000'000;
  // `points_max`: even.
  explicit ReplayTimeline(size_t points_max = kPointsMax);

  // The clock is about to move to `to_ns`, and an interval ends on the way: what is now is wanted.
  bool ends_before(uint64_t to_ns) const { return to_ns >= next_end_ns(); }
  // `now`: until `to_ns`, as nothing changed since the last event.
  void pass(uint64_t to_ns, const ReplayGauges& now);
  // At the time that the clock shows.
  void count_prompt(uint64_t tokens) { prompt_tokens_ += tokens; }
  void count_output(uint64_t tokens) { output_tokens_ += tokens; }
  // The replay is over. An interval that has just begun is a part of the one before.
  void finish(uint64_t end_ns, const ReplayGauges& now);

  const std::vector<TimelinePoint>& points() const { return points_; }
  uint64_t interval_ns() const { return interval_ns_; }

 private:
  uint64_t next_end_ns() const { return (points_.size() + 1) * interval_ns_; }
  void close(uint64_t end_ns, const ReplayGauges& now);
  void halve();

  size_t points_max_;
  uint64_t interval_ns_ = kFirstIntervalNs;
  std::vector<TimelinePoint> points_;
  uint64_t prompt_tokens_ = 0, output_tokens_ = 0;  // since the last point
};

}  // namespace net
