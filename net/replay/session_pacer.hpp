// When each request of a trace is sent. Open loop: at its recorded time. Closed loop: when the
// answer it waits for is there and the time to think is over. Plain and deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "net/trace/trace.hpp"

namespace net {

enum class PaceMode {
  kOpen,    // recorded times, whatever the server does
  kClosed,  // sessions: the next request after the answer
  kSerial,  // one request at a time, in the trace's order
};

// From `from_s` on, until the next phase begins.
struct PacePhase {
  double from_s = 0;
  uint32_t concurrency = 0;  // sessions that are open at once; 0: no cap
};

struct Pace {
  PaceMode mode = PaceMode::kClosed;
  double time_scale = 1;  // of recorded times and times to think: 0.5 is twice as fast
  bool think = true;      // false: the next request follows its answer at once (closed loop)
  bool sub_agents = true;  // false: the sessions' main conversations alone
  uint32_t repeat = 1;    // how many times the trace is played, one after the other
  // Sessions that have no time of their own begin in an order drawn by the seed; else the trace's.
  bool shuffle = false;
  double until_s = 0;      // nothing is sent from then on; 0: all is
  // Sessions start at random within so many seconds instead of at their recorded time.
  double spread_s = 0;
  std::vector<PacePhase> phases;  // ascending; empty: no cap. Closed loop only.
  uint64_t seed = 1;
};

// One request of one playing of the trace.
struct Play {
  uint32_t request = 0, round = 0;
  bool operator==(const Play&) const = default;
};

class SessionPacer {
 public:
  struct Due {
    uint64_t at_ns = 0;
    Play play;
  };
  // `sessions`: which of the trace's are played, ascending. `trace` must outlive it.
  SessionPacer(const Trace& trace, const Pace& pace, const std::vector<uint32_t>& sessions);

  // The next one to be sent that is known by now; none: an answer must come first, or all is sent.
  std::optional<Due> next() const;
  void sent();  // next() was
  // Its answer is complete, or it ended in some other way.
  void ended(const Play& play, uint64_t at_ns);
  // When sessions that wait for room get some by the clock alone, and that this time has come.
  std::optional<uint64_t> next_phase_ns() const;
  void phase_begins(uint64_t at_ns);
  // Nothing will be sent any more, and all that was sent has ended.
  bool done() const {
    return left_ == 0 || (pace_.until_s > 0 && under_way_ == 0 && !next());
  }
  uint64_t plays() const { return total_; }

 private:
  struct Later {  // of the heap: earliest first, ties by order of play
    bool operator()(const Due& a, const Due& b) const {
      if (a.at_ns != b.at_ns) return a.at_ns > b.at_ns;
      if (a.play.round != b.play.round) return a.play.round > b.play.round;
      return a.play.request > b.play.request;
    }
  };
  struct Start {  // of a session in a round
    uint64_t at_ns = 0;
    uint32_t session = 0, round = 0;
  };
  uint64_t scaled_ns(double seconds) const;
  void plan_starts(const std::vector<uint32_t>& sessions);
  void begin(const Start& start, uint64_t at_ns);
  void queue_serial(uint64_t at_ns);
  void open_sessions(uint64_t now_ns);

  const Trace& trace_;
  Pace pace_;
  std::vector<std::vector<uint32_t>> requests_;   // [session], in order
  std::vector<std::vector<uint32_t>> followers_;  // [request]: those that wait for it
  std::vector<Start> starts_;                     // in order of time
  size_t next_start_ = 0;
  size_t phase_ = 0;   // begun
  uint32_t open_ = 0;  // sessions begun and not over
  std::vector<std::vector<uint32_t>> left_in_;  // [round][session]: requests not ended
  std::priority_queue<Due, std::vector<Due>, Later> due_;
  std::vector<Play> serial_;  // in order
  size_t next_serial_ = 0;
  uint64_t left_ = 0, total_ = 0;
  uint64_t under_way_ = 0;  // sent and not ended
};

}  // namespace net
