#include "net/replay/replay_timeline.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "net/replay/typical_steps.hpp"

namespace {

net::ReplayGauges gauges(uint32_t running) {
  net::ReplayGauges now;
  now.running = running;
  return now;
}

}  // namespace

TEST_CASE("A timeline holds what was at the end of each interval, and what came within it",
          "[replay]") {
  constexpr uint64_t kMs = 1'000'000;
  net::ReplayTimeline timeline(8);
  timeline.pass(0, gauges(0));
  timeline.count_prompt(5);  // at 0
  CHECK_FALSE(timeline.ends_before(kMs - 1));
  CHECK(timeline.ends_before(kMs));
  timeline.pass(kMs, gauges(3));
  timeline.count_output(7);  // at 1 ms: of the second interval
  timeline.pass(3 * kMs + 1, gauges(4));
  timeline.finish(3 * kMs + kMs / 2, gauges(9));
  const std::vector<net::TimelinePoint> wanted = {{0, kMs, gauges(3), 5, 0},
                                                  {kMs, 2 * kMs, gauges(4), 0, 7},
                                                  {2 * kMs, 3 * kMs, gauges(4), 0, 0},
                                                  {3 * kMs, 3 * kMs + kMs / 2, gauges(9), 0, 0}};
  CHECK(timeline.points() == wanted);
}

TEST_CASE("An interval that has hardly begun belongs to the one before", "[replay]") {
  constexpr uint64_t kMs = 1'000'000;
  net::ReplayTimeline timeline(8);
  timeline.pass(kMs, gauges(1));
  timeline.count_output(2);
  timeline.finish(kMs + kMs / 4, gauges(6));
  REQUIRE(timeline.points().size() == 1);
  CHECK(timeline.points().front() == net::TimelinePoint{0, kMs + kMs / 4, gauges(6), 0, 2});
}

TEST_CASE("A timeline agrees with all events, however long it gets, in bounded memory",
          "[replay][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  constexpr size_t kMost = 16;
  net::ReplayTimeline timeline(kMost);
  struct Event {
    uint64_t at_ns, prompt, output;
    uint32_t running;  // from here on
  };
  std::vector<Event> events = {{0, 0, 0, 0}};
  uint64_t now_ns = 0;
  for (int i = 0; i < 400; ++i) {
    const uint64_t longest = uint64_t{1} << (random() % 34);  // up to 17 s
    now_ns += random() % longest;
    timeline.pass(now_ns, gauges(events.back().running));
    events.push_back({now_ns, random() % 100, random() % 10, static_cast<uint32_t>(random() % 50)});
    timeline.count_prompt(events.back().prompt);
    timeline.count_output(events.back().output);
    REQUIRE(timeline.points().size() < kMost);
  }
  timeline.finish(now_ns, gauges(events.back().running));
  const auto& points = timeline.points();
  REQUIRE(points.size() <= kMost);
  REQUIRE(points.size() >= kMost / 2 - 1);
  uint64_t end_ns = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& point = points[i];
    const bool is_last = i + 1 == points.size();
    CHECK(point.begin_ns == end_ns);
    if (!is_last) CHECK(point.end_ns == (i + 1) * timeline.interval_ns());
    end_ns = point.end_ns;
    uint64_t prompt = 0, output = 0;
    uint32_t running = 0;
    for (const Event& event : events) {
      const bool is_before = event.at_ns < point.end_ns || is_last;
      if (is_before) running = event.running;
      if (event.at_ns < point.begin_ns || !is_before) continue;
      prompt += event.prompt;
      output += event.output;
    }
    CHECK(point.prompt_tokens == prompt);
    CHECK(point.output_tokens == output);
    CHECK(point.at_end.running == running);
  }
  CHECK(end_ns == now_ns);
}

TEST_CASE("A typical step is the mean of those like the median", "[replay]") {
  net::TypicalSteps steps;
  CHECK(steps.decode().empty());
  CHECK(steps.prefill().empty());
  const auto decode = [](uint32_t rows, uint64_t position) {
    runtime::StepShape shape;
    for (uint32_t i = 0; i < rows; ++i) shape.add_decode(position);
    return shape;
  };
  steps.add({});
  for (const uint64_t position : {99, 199}) steps.add(decode(4, position));
  steps.add(decode(2, 5));
  steps.add(decode(40, 9));
  runtime::StepShape typical = steps.decode();
  CHECK(typical.decode_rows == 4);
  CHECK(typical.decode_tokens == 4);
  CHECK(typical.decode_context == 4 * 150);
  CHECK(typical.prefill_rows == 0);

  runtime::StepShape chunk = decode(3, 10);
  chunk.add_prefill(1000, 600);
  steps.add(chunk);
  steps.add(chunk);
  runtime::StepShape small;
  small.add_prefill(0, 10);
  steps.add(small);
  typical = steps.prefill();
  CHECK(typical == chunk);
}
