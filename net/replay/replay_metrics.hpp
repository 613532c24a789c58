// What a replay is judged by: when each request was sent, heard its first token and ended, what the
// cache spared it, and the distributions and sums over all of them.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "net/replay/time_distribution.hpp"
#include "net/replay/session_pacer.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace net {

enum class PlayEnd { kFinished, kLeft, kTimedOut, kFailed };  // kLeft: the client went away

struct PlayRecord {
  Play play;
  uint64_t sent_ns = 0, first_ns = 0, last_ns = 0;  // first_ns 0: no token was heard
  uint32_t prompt_tokens = 0, output_tokens = 0;
  uint32_t kv_hit = 0, state_hit = 0;  // prompt tokens, of its first admission
  PlayEnd end = PlayEnd::kFinished;
};

struct ReplaySlo {  // a request is good when both hold; 0: no such bound
  double ttft_s = 0, itl_s = 0;  // the latter on its mean
};

class ReplayMetrics {
 public:
  explicit ReplayMetrics(const ReplaySlo& slo) : slo_(slo) {}

  void token(PlayRecord& record, uint64_t now_ns);  // heard by the client
  // At each of `skipped`'s ends, by each of these: requests that have had their first token.
  void tokens(const runtime::SkippedSteps& skipped, const std::vector<PlayRecord*>& records);
  void ended(const PlayRecord& record);

  // {"requests", "finished", ..., "ttft_s": {"mean", "p50", "p90", "p99", "max"}, ...} over
  // `elapsed_ns` of the replay's time.
  boost::json::object summary(uint64_t elapsed_ns) const;
  const TimeDistribution& ttft() const { return ttft_; }
  const TimeDistribution& itl() const { return itl_; }
  const TimeDistribution& latency() const { return latency_; }  // of those that finished

 private:
  bool is_good(const PlayRecord& record) const;

  ReplaySlo slo_;
  TimeDistribution ttft_, itl_, latency_;
  uint64_t ends_[4] = {};
  uint64_t prompt_tokens_ = 0, output_tokens_ = 0, kv_hit_ = 0, state_hit_ = 0;
  uint64_t good_ = 0, good_tokens_ = 0;
};

// Six significant digits after the decimal point at most: results are read, and compared by byte.
double rounded(double value);
double ratio(double part, double whole);  // 0 of nothing

}  // namespace net
