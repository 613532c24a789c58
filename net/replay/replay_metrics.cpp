#include "net/replay/replay_metrics.hpp"

#include <cmath>

namespace net {

namespace json = boost::json;

namespace {

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

json::object quantiles(const TimeDistribution& times) {
  return {{"mean", rounded(times.mean_ns() * 1e-9)},
          {"p50", rounded(seconds(times.quantile_ns(0.5)))},
          {"p90", rounded(seconds(times.quantile_ns(0.9)))},
          {"p99", rounded(seconds(times.quantile_ns(0.99)))},
          {"max", rounded(seconds(times.max_ns()))}};
}

}  // namespace

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

double ratio(double part, double whole) { return whole == 0 ? 0 : rounded(part / whole); }

void ReplayMetrics::token(PlayRecord& record, uint64_t now_ns) {
  if (record.output_tokens == 0) {
    record.first_ns = now_ns;
    ttft_.add(now_ns - record.sent_ns);
  } else {
    itl_.add(now_ns - record.last_ns);
  }
  ++record.output_tokens;
  record.last_ns = now_ns;
}

void ReplayMetrics::tokens(const runtime::SkippedSteps& skipped,
                           const std::vector<PlayRecord*>& records) {
  const auto& steps = skipped.steps;
  for (PlayRecord* record : records) {
    itl_.add(steps.front().end_ns - record->last_ns);
    record->output_tokens += static_cast<uint32_t>(steps.size());
    record->last_ns = steps.back().end_ns;
  }
  for (size_t i = 1; i < steps.size(); ++i)
    itl_.add(steps[i].end_ns - steps[i - 1].end_ns, records.size());
}

bool ReplayMetrics::is_good(const PlayRecord& record) const {
  if (record.end != PlayEnd::kFinished || record.output_tokens == 0) return false;
  if (slo_.ttft_s > 0 && seconds(record.first_ns - record.sent_ns) > slo_.ttft_s) return false;
  if (slo_.itl_s <= 0 || record.output_tokens < 2) return true;
  return seconds(record.last_ns - record.first_ns) / (record.output_tokens - 1) <= slo_.itl_s;
}

void ReplayMetrics::ended(const PlayRecord& record) {
  ++ends_[static_cast<size_t>(record.end)];
  prompt_tokens_ += record.prompt_tokens;
  output_tokens_ += record.output_tokens;
  kv_hit_ += record.kv_hit;
  state_hit_ += record.state_hit;
  if (record.end == PlayEnd::kFinished && record.output_tokens > 0)
    latency_.add(record.last_ns - record.sent_ns);
  if (!is_good(record)) return;
  ++good_;
  good_tokens_ += record.output_tokens;
}

json::object ReplayMetrics::summary(uint64_t elapsed_ns) const {
  const double elapsed = seconds(elapsed_ns);
  const auto prompt = static_cast<double>(prompt_tokens_);
  const auto output = static_cast<double>(output_tokens_);
  json::object out;
  out["requests"] = ends_[0] + ends_[1] + ends_[2] + ends_[3];
  out["finished"] = ends_[0];
  out["left"] = ends_[1];
  out["timed_out"] = ends_[2];
  out["failed"] = ends_[3];
  out["elapsed_s"] = rounded(elapsed);
  out["prompt_tokens"] = prompt_tokens_;
  out["output_tokens"] = output_tokens_;
  out["kv_hit_tokens"] = kv_hit_;
  out["state_hit_tokens"] = state_hit_;
  out["kv_hit_rate"] = ratio(static_cast<double>(kv_hit_), prompt);
  out["state_hit_rate"] = ratio(static_cast<double>(state_hit_), prompt);
  out["prompt_tokens_per_s"] = ratio(prompt, elapsed);
  out["output_tokens_per_s"] = ratio(output, elapsed);
  out["good_requests"] = good_;
  out["good_requests_per_s"] = ratio(static_cast<double>(good_), elapsed);
  out["good_tokens_per_s"] = ratio(static_cast<double>(good_tokens_), elapsed);
  out["ttft_s"] = quantiles(ttft_);
  out["itl_s"] = quantiles(itl_);
  out["latency_s"] = quantiles(latency_);
  return out;
}

}  // namespace net
