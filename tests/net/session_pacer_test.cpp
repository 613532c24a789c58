#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "net/replay/session_pacer.hpp"

namespace {

using net::Pace;
using net::PaceMode;
using net::Play;
using net::SessionPacer;

// Sessions of `turns` requests each; the answer of one leads to the next after 2 s.
net::Trace chats(uint32_t sessions, uint32_t turns, net::TraceClock clock) {
  net::Trace trace;
  trace.clock = clock;
  for (uint32_t s = 0; s < sessions; ++s) {
    const double start = clock == net::TraceClock::kShared ? 10.0 * s : 0;
    trace.sessions.push_back({"s", start, turns});
    for (uint32_t t = 0; t < turns; ++t) {
      net::TraceRequest request;
      request.session = s;
      request.start_s = start + 5.0 * t;
      if (t > 0) {
        request.after = static_cast<uint32_t>(trace.requests.size()) - 1;
        request.think_s = 2;
      }
      trace.requests.push_back(request);
    }
  }
  return trace;
}

std::vector<uint32_t> all(const net::Trace& trace) {
  std::vector<uint32_t> sessions(trace.sessions.size());
  std::iota(sessions.begin(), sessions.end(), 0u);
  return sessions;
}

struct Sent {
  double at_s;
  uint32_t request, round;
  bool operator==(const Sent&) const = default;
};

// Plays against a server that takes `service_s` for every request, whatever the load.
std::vector<Sent> play(const net::Trace& trace, const Pace& pace, double service_s) {
  SessionPacer pacer(trace, pace, all(trace));
  struct End {
    uint64_t at_ns;
    Play play;
  };
  std::vector<End> ends;  // sorted: service is constant
  std::vector<Sent> sent;
  size_t ended = 0;
  while (!pacer.done()) {
    const auto due = pacer.next();
    const auto phase = pacer.next_phase_ns();
    const uint64_t due_at = due ? due->at_ns : UINT64_MAX, phase_at = phase.value_or(UINT64_MAX);
    const uint64_t end_at = ended < ends.size() ? ends[ended].at_ns : UINT64_MAX;
    REQUIRE((due || phase || ended < ends.size()));
    if (end_at <= due_at && end_at <= phase_at) {
      pacer.ended(ends[ended].play, end_at);
      ++ended;
    } else if (phase_at < due_at) {
      pacer.phase_begins(phase_at);
    } else {
      pacer.sent();
      sent.push_back({static_cast<double>(due_at) / 1e9, due->play.request, due->play.round});
      ends.push_back({due_at + static_cast<uint64_t>(service_s * 1e9), due->play});
    }
  }
  if (pace.until_s == 0) CHECK(sent.size() == pacer.plays());
  return sent;
}

}  // namespace

TEST_CASE("An open loop sends at recorded times, whatever the server does", "[replay]") {
  Pace pace;
  pace.mode = PaceMode::kOpen;
  pace.time_scale = 0.5;
  const auto trace = chats(2, 2, net::TraceClock::kShared);
  const std::vector<Sent> expected{{0, 0, 0}, {2.5, 1, 0}, {5, 2, 0}, {7.5, 3, 0}};
  CHECK(play(trace, pace, 100) == expected);
}

TEST_CASE("A closed loop waits for the answer and then for the user", "[replay]") {
  Pace pace;
  const auto trace = chats(2, 2, net::TraceClock::kShared);
  const std::vector<Sent> expected{{0, 0, 0}, {10, 2, 0}, {102, 1, 0}, {112, 3, 0}};
  CHECK(play(trace, pace, 100) == expected);
  pace.think = false;
  const std::vector<Sent> at_once{{0, 0, 0}, {10, 2, 0}, {100, 1, 0}, {110, 3, 0}};
  CHECK(play(trace, pace, 100) == at_once);
}

TEST_CASE("Sub-agents start when the answer that began them is there", "[replay]") {
  auto trace = chats(1, 2, net::TraceClock::kOwn);
  net::TraceRequest agent;
  agent.conversation = 1;
  agent.after = 0;
  agent.think_s = 0.5;
  trace.requests.push_back(agent);
  const std::vector<Sent> expected{{0, 0, 0}, {10.5, 2, 0}, {12, 1, 0}};
  CHECK(play(trace, {}, 10) == expected);
}

TEST_CASE("Without sub-agents the main conversations are played alone", "[replay]") {
  auto trace = chats(1, 2, net::TraceClock::kOwn);
  net::TraceRequest agent;
  agent.conversation = 1;
  agent.after = 0;
  trace.requests.push_back(agent);
  Pace pace;
  pace.sub_agents = false;
  const std::vector<Sent> expected{{0, 0, 0}, {12, 1, 0}};
  CHECK(play(trace, pace, 10) == expected);
  pace.mode = PaceMode::kSerial;
  CHECK(play(trace, pace, 10).size() == 2);
}

TEST_CASE("Nothing is sent once the time is up, and what was sent ends", "[replay]") {
  const auto trace = chats(2, 3, net::TraceClock::kShared);
  Pace pace;
  pace.until_s = 12;
  const std::vector<Sent> expected{{0, 0, 0}, {5, 1, 0}, {10, 2, 0}, {10, 3, 0}};
  CHECK(play(trace, pace, 3) == expected);
  pace.until_s = 10;
  CHECK(play(trace, pace, 3) == std::vector<Sent>{{0, 0, 0}, {5, 1, 0}});
}

TEST_CASE("A cap on sessions starts the next when one is over", "[replay]") {
  Pace pace;
  pace.phases = {{0, 1}};
  const auto trace = chats(3, 1, net::TraceClock::kOwn);
  const std::vector<Sent> expected{{0, 0, 0}, {4, 1, 0}, {8, 2, 0}};
  CHECK(play(trace, pace, 4) == expected);
  pace.phases = {{0, 1}, {5, 2}};  // from then on two at once
  const std::vector<Sent> more{{0, 0, 0}, {4, 1, 0}, {5, 2, 0}};
  CHECK(play(trace, pace, 4) == more);
}

TEST_CASE("Serial play sends one request at a time, in the trace's order", "[replay]") {
  Pace pace;
  pace.mode = PaceMode::kSerial;
  pace.repeat = 2;
  const auto trace = chats(2, 1, net::TraceClock::kShared);
  const std::vector<Sent> expected{{0, 0, 0}, {3, 1, 0}, {6, 0, 1}, {9, 1, 1}};
  CHECK(play(trace, pace, 3) == expected);
}

TEST_CASE("Starts that are spread fill the time given, as the seed says", "[replay]") {
  Pace pace;
  pace.spread_s = 1000;
  pace.seed = 5;
  const auto trace = chats(400, 1, net::TraceClock::kOwn);
  const auto sent = play(trace, pace, 1);
  CHECK(sent == play(trace, pace, 1));
  double sum = 0;
  for (const Sent& one : sent) {
    CHECK((one.at_s >= 0 && one.at_s < 1000));
    sum += one.at_s;
  }
  CHECK(sum / 400 == Approx(500).margin(60));  // four standard deviations
  pace.seed = 6;
  CHECK_FALSE(sent == play(trace, pace, 1));
}

TEST_CASE("Shuffled sessions begin in an order that the seed draws, each once", "[replay]") {
  const net::Trace trace = chats(12, 1, net::TraceClock::kOwn);
  const auto order = [&](bool shuffle, uint64_t seed) {
    Pace pace;
    pace.shuffle = shuffle;
    pace.seed = seed;
    pace.phases = {{0, 1}};
    std::vector<uint32_t> requests;
    for (const Sent& sent : play(trace, pace, 1)) requests.push_back(sent.request);
    return requests;
  };
  const auto drawn = order(true, 1);
  CHECK(order(false, 1) == all(trace));
  CHECK(drawn != all(trace));
  CHECK(drawn == order(true, 1));
  CHECK(drawn != order(true, 2));
  CHECK(std::set<uint32_t>(drawn.begin(), drawn.end()).size() == 12);
}

TEST_CASE("A trace that is played again goes on where its last session began", "[replay]") {
  Pace pace;
  pace.repeat = 2;
  const auto trace = chats(2, 1, net::TraceClock::kShared);
  const std::vector<Sent> expected{{0, 0, 0}, {10, 1, 0}, {10, 0, 1}, {20, 1, 1}};
  CHECK(play(trace, pace, 1) == expected);
}
