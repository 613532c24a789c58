#include "actors/telemetry.hpp"

#include <utility>

namespace actors {
namespace {

constexpr uint64_t kWindowNs = 5'000'000'000;  // throughput is an average over 5 s
constexpr uint64_t kSpacingNs = 50'000'000;    // samples kept: 5 s / 50 ms = 100

Histogram make_histogram(std::vector<double> bounds) {
  Histogram histogram;
  histogram.counts.assign(bounds.size() + 1, 0);
  histogram.bounds = std::move(bounds);
  return histogram;
}

}  // namespace

Telemetry::Telemetry(Clock clock) : clock_(std::move(clock)) {
  values_.ttft_seconds =
      make_histogram({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1,
                      2.5,   5,     7.5,  10,   15,   20,   25,   30,  60,   100, 200,  400});
  values_.itl_seconds = make_histogram(
      {0.0005, 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04,
       0.05,   0.075, 0.1,   0.15,  0.2,   0.3,   0.4,  0.5,   0.75, 1,     2,    5});
  values_.e2e_seconds = make_histogram({0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,   2,   5,   10,  20,
                                        40,   60,   80,  100, 150, 200, 250, 300, 350, 500, 1000});
  values_.queue_seconds =
      make_histogram({0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,   2,   3,  4,
                      5,      10,    15,    20,   30,   40,   50,  60,  80,  100, 200, 400});
  values_.worker_gap_seconds =
      make_histogram({0.000005, 0.00001, 0.00002, 0.00005, 0.000075, 0.0001, 0.00015, 0.0002,
                      0.0003, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.1, 1});
}

void Telemetry::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.ttft_seconds.observe(seconds);
}

void Telemetry::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.itl_seconds.observe(seconds);
}

void Telemetry::finished(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.e2e_seconds.observe(seconds);
}

void Telemetry::scheduled(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.queue_seconds.observe(seconds);
}

void Telemetry::publish(const runtime::SchedulerStats& stats) {
  const uint64_t now = clock_();
  const std::lock_guard lock(mutex_);
  values_.scheduler = stats;
  if (samples_.empty() || now >= samples_.back().time_ns + kSpacingNs) {
    samples_.push_back({now, stats.generation_tokens_total});
  }
  // One sample older than the window stays, so that the window is always covered.
  while (samples_.size() > 2 && samples_[1].time_ns + kWindowNs < now) samples_.pop_front();
}

void Telemetry::publish(const memory::CacheOwners& pools, const memory::CacheCounters& cache) {
  const std::lock_guard lock(mutex_);
  values_.pools = pools;
  values_.cache = cache;
}

void Telemetry::step(uint64_t start_ns, uint64_t end_ns, bool starved) {
  const std::lock_guard lock(mutex_);
  const uint64_t gap_ns =
      last_end_ns_ != 0 && start_ns > last_end_ns_ ? start_ns - last_end_ns_ : 0;
  if (starved && last_end_ns_ != 0) {
    values_.worker_gap_seconds.observe(static_cast<double>(gap_ns) * 1e-9);
    values_.worker_idle_ns += gap_ns;
  }
  values_.worker_busy_ns += end_ns - start_ns;
  last_end_ns_ = end_ns;
}

double Telemetry::throughput() const {
  if (samples_.empty()) return 0;
  const uint64_t now = clock_();
  const uint64_t since_ns = now > kWindowNs ? now - kWindowNs : 0;
  Sample start = samples_.front();
  for (const Sample& sample : samples_) {
    if (sample.time_ns <= since_ns) start = sample;
  }
  const double seconds = std::max(seconds_between(std::max(start.time_ns, since_ns), now), 1.0);
  return static_cast<double>(values_.scheduler.generation_tokens_total - start.tokens) / seconds;
}

ServiceMetrics Telemetry::snapshot() const {
  const std::lock_guard lock(mutex_);
  ServiceMetrics copy = values_;
  copy.gen_throughput = throughput();
  return copy;
}

}  // namespace actors
