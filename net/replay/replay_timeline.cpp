#include "net/replay/replay_timeline.hpp"

#include <utility>

#include "kernels/base/verify.hpp"

namespace net {

ReplayTimeline::ReplayTimeline(size_t points_max) : points_max_(points_max) {
  VERIFY(points_max >= 2);
  VERIFY(points_max % 2 == 0);
}

void ReplayTimeline::pass(uint64_t to_ns, const ReplayGauges& now) {
  while (next_end_ns() <= to_ns) {
    close(next_end_ns(), now);
    if (points_.size() == points_max_) halve();
  }
}

void ReplayTimeline::close(uint64_t end_ns, const ReplayGauges& now) {
  const uint64_t begin_ns = points_.empty() ? 0 : points_.back().end_ns;
  points_.push_back({begin_ns, end_ns, now, std::exchange(prompt_tokens_, 0),
                     std::exchange(output_tokens_, 0)});
}

// Tokens add up; what was at the end of the later interval is what is at the end of both.
void ReplayTimeline::halve() {
  for (size_t i = 0; i < points_max_ / 2; ++i) {
    const TimelinePoint& first = points_[2 * i];
    TimelinePoint joined = points_[2 * i + 1];
    joined.begin_ns = first.begin_ns;
    joined.prompt_tokens += first.prompt_tokens;
    joined.output_tokens += first.output_tokens;
    points_[i] = joined;
  }
  points_.resize(points_max_ / 2);
  interval_ns_ *= 2;
}

void ReplayTimeline::finish(uint64_t end_ns, const ReplayGauges& now) {
  pass(end_ns, now);
  const uint64_t begin_ns = points_.empty() ? 0 : points_.back().end_ns;
  if (points_.empty() || (end_ns - begin_ns) * 2 >= interval_ns_) {
    close(end_ns, now);
    return;
  }
  TimelinePoint& last = points_.back();
  last.end_ns = end_ns;
  last.at_end = now;
  last.prompt_tokens += std::exchange(prompt_tokens_, 0);
  last.output_tokens += std::exchange(output_tokens_, 0);
}

}  // namespace net
