#include "net/replay/session_pacer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/verify.hpp"
#include "runtime/counter_random.hpp"

namespace net {
namespace {

constexpr uint32_t kNoCap = std::numeric_limits<uint32_t>::max();

std::vector<uint32_t> in_order(std::vector<uint32_t> sessions, const Pace& pace, uint32_t round) {
  if (!pace.shuffle) return sessions;
  const runtime::CounterRandom random(pace.seed + round, "session order");
  std::stable_sort(sessions.begin(), sessions.end(), [&](uint32_t a, uint32_t b) {
    return random.bits(a) < random.bits(b);
  });
  return sessions;
}

}  // namespace

SessionPacer::SessionPacer(const Trace& trace, const Pace& pace,
                           const std::vector<uint32_t>& sessions)
    : trace_(trace),
      pace_(pace),
      requests_(trace.sessions.size()),
      followers_(trace.requests.size()) {
  VERIFY(pace.repeat > 0);
  std::vector<bool> played(trace.sessions.size(), false);
  for (const uint32_t session : sessions) played[session] = true;
  const auto is_played = [&](const TraceRequest& request) {
    return played[request.session] && (pace.sub_agents || request.conversation == 0);
  };
  for (uint32_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& request = trace.requests[i];
    if (!is_played(request)) continue;
    requests_[request.session].push_back(i);
    if (request.after) followers_[*request.after].push_back(i);
    total_ += pace.repeat;
  }
  left_ = total_;
  left_in_.resize(pace.repeat);
  for (auto& of_round : left_in_) {
    for (const auto& requests : requests_)
      of_round.push_back(static_cast<uint32_t>(requests.size()));
  }
  if (pace.mode == PaceMode::kSerial) {
    for (uint32_t round = 0; round < pace.repeat; ++round) {
      for (uint32_t i = 0; i < trace.requests.size(); ++i)
        if (is_played(trace.requests[i])) serial_.push_back({i, round});
    }
    queue_serial(0);
    return;
  }
  plan_starts(sessions);
  open_sessions(0);
}

uint64_t SessionPacer::scaled_ns(double seconds) const {
  return static_cast<uint64_t>(std::llround(std::max(seconds, 0.0) * pace_.time_scale * 1e9));
}

// A trace that has one clock keeps the distances between its sessions; a round begins when the
// last session of the one before has begun.
void SessionPacer::plan_starts(const std::vector<uint32_t>& sessions) {
  const runtime::CounterRandom random(pace_.seed, "session starts");
  uint64_t offset_ns = 0, draws = 0;
  for (uint32_t round = 0; round < pace_.repeat; ++round) {
    uint64_t last_ns = offset_ns;
    for (const uint32_t session : in_order(sessions, pace_, round)) {
      if (requests_[session].empty()) continue;
      uint64_t at_ns = offset_ns;
      if (pace_.spread_s > 0) {
        at_ns += static_cast<uint64_t>(random.uniform(draws++) * pace_.spread_s * 1e9);
      } else if (trace_.clock == TraceClock::kShared) {
        at_ns += scaled_ns(trace_.sessions[session].start_s);
      }
      starts_.push_back({at_ns, session, round});
      last_ns = std::max(last_ns, at_ns);
    }
    offset_ns = pace_.spread_s > 0 ? offset_ns + static_cast<uint64_t>(pace_.spread_s * 1e9)
                                   : last_ns;
  }
  std::stable_sort(starts_.begin(), starts_.end(),
                   [](const Start& a, const Start& b) { return a.at_ns < b.at_ns; });
}

void SessionPacer::open_sessions(uint64_t now_ns) {
  const bool has_cap = pace_.mode == PaceMode::kClosed && !pace_.phases.empty() &&
                       pace_.phases[phase_].concurrency > 0;
  const uint32_t cap = has_cap ? pace_.phases[phase_].concurrency : kNoCap;
  while (next_start_ < starts_.size() && open_ < cap) {
    const Start& start = starts_[next_start_++];
    ++open_;
    begin(start, std::max(now_ns, start.at_ns));
  }
}

void SessionPacer::begin(const Start& start, uint64_t at_ns) {
  const double own_start =
      trace_.clock == TraceClock::kShared ? trace_.sessions[start.session].start_s : 0;
  for (const uint32_t i : requests_[start.session]) {
    const TraceRequest& request = trace_.requests[i];
    if (pace_.mode == PaceMode::kClosed && request.after) continue;
    due_.push({at_ns + scaled_ns(request.start_s - own_start), {i, start.round}});
  }
}

void SessionPacer::queue_serial(uint64_t at_ns) {
  if (next_serial_ < serial_.size()) due_.push({at_ns, serial_[next_serial_++]});
}

std::optional<SessionPacer::Due> SessionPacer::next() const {
  if (due_.empty()) return std::nullopt;
  if (pace_.until_s > 0 && static_cast<double>(due_.top().at_ns) >= pace_.until_s * 1e9)
    return std::nullopt;
  return due_.top();
}

void SessionPacer::sent() {
  VERIFY(!due_.empty());
  due_.pop();
  ++under_way_;
}

void SessionPacer::ended(const Play& play, uint64_t at_ns) {
  VERIFY(left_ > 0);
  --left_;
  VERIFY(under_way_ > 0);
  --under_way_;
  if (pace_.mode == PaceMode::kSerial) return queue_serial(at_ns);
  if (pace_.mode == PaceMode::kClosed) {
    for (const uint32_t follower : followers_[play.request]) {
      const double think_s = pace_.think ? trace_.requests[follower].think_s : 0;
      due_.push({at_ns + scaled_ns(think_s), {follower, play.round}});
    }
  }
  uint32_t& left = left_in_[play.round][trace_.requests[play.request].session];
  VERIFY(left > 0);
  if (--left > 0) return;
  VERIFY(open_ > 0);
  --open_;
  open_sessions(at_ns);
}

std::optional<uint64_t> SessionPacer::next_phase_ns() const {
  if (next_start_ == starts_.size() || phase_ + 1 >= pace_.phases.size()) return std::nullopt;
  return static_cast<uint64_t>(pace_.phases[phase_ + 1].from_s * 1e9);
}

void SessionPacer::phase_begins(uint64_t at_ns) {
  VERIFY(phase_ + 1 < pace_.phases.size());
  ++phase_;
  open_sessions(at_ns);
}

}  // namespace net
