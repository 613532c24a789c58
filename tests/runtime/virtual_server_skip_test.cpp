// What skipping steps must not change: every event, hit and step of a server, and its time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/sim/virtual_server.hpp"

namespace {

using runtime::DeviceTimes;
using runtime::DeviceWork;
using runtime::SequenceId;
using runtime::StepShape;
using runtime::TokenId;

// A pipeline's: it takes the next plan before the results of this one are out.
class StagedClock final : public runtime::DeviceClock {
 public:
  explicit StagedClock(uint64_t stages) : stages_(stages) {}
  DeviceTimes start(const DeviceWork& work, uint64_t now_ns) override {
    const StepShape& shape = work.forward;
    const uint64_t copies = work.copies.any() ? 700 : 0;
    if (shape.empty()) {
      last_ns_ = std::max(last_ns_, now_ns + copies);
      return {now_ns + copies, last_ns_};
    }
    const uint64_t ready = shape.decode_rows > 0 ? std::max(now_ns, last_ns_) : now_ns;
    const uint64_t stage = 1000 + 10 * shape.tokens() + shape.decode_context / 7 +
                           (work.more_waits ? 0 : 13);
    last_ns_ = std::max(last_ns_, ready + copies + stages_ * stage);
    return {std::min(ready + copies + stage, last_ns_), last_ns_};
  }

 private:
  uint64_t stages_, last_ns_ = 0;
};

TokenId answer(SequenceId sequence, uint32_t index) {
  return static_cast<TokenId>(sequence.value >> 32) * 1000 + static_cast<TokenId>(index);
}

class Recorder final : public runtime::VirtualServerSink {
 public:
  void on_event(uint64_t now_ns, const runtime::SessionEvent& event) override {
    if (const auto* token = std::get_if<runtime::SequenceToken>(&event)) {
      heard(now_ns, token->sequence, token->token);
    } else if (const auto* end = std::get_if<runtime::SequenceFinished>(&event)) {
      line("end", {now_ns, end->sequence.value, static_cast<uint64_t>(end->reason),
                   end->output_tokens, end->cached_tokens});
    }
  }
  void on_hit(uint64_t now_ns, const runtime::CacheHit& hit) override {
    line("hit", {now_ns, hit.sequence.value, hit.kv, hit.state});
  }
  void on_step(uint64_t begin_ns, uint64_t end_ns, const StepShape& shape) override {
    line("step", {begin_ns, end_ns, shape.prefill_tokens, shape.decode_tokens,
                  shape.decode_context});
  }
  void on_skipped(const runtime::SkippedSteps& skipped) override {
    skipped_steps += skipped.steps.size();
    StepShape shape = skipped.first;
    for (const auto& [begin_ns, end_ns] : skipped.steps) {
      on_step(begin_ns, end_ns, shape);
      shape.advance_decode();
      for (const SequenceId sequence : skipped.rows)
        heard(end_ns, sequence, answer(sequence, tokens[sequence.value]));
    }
  }
  std::string all;
  uint64_t skipped_steps = 0;

 private:
  void heard(uint64_t now_ns, SequenceId sequence, TokenId token) {
    ++tokens[sequence.value];
    line("token", {now_ns, sequence.value, static_cast<uint64_t>(token)});
  }
  void line(const std::string& kind, const std::vector<uint64_t>& numbers) {
    all += kind;
    for (const uint64_t number : numbers) all += " " + std::to_string(number);
    all += "\n";
  }
  std::map<uint64_t, uint32_t> tokens;
};

struct Arrival {
  uint64_t at_ns = 0;
  runtime::Submit submit;
  uint64_t aborted_ns = 0;  // 0: it is not
};

std::vector<Arrival> random_arrivals(std::mt19937_64& random) {
  std::vector<Arrival> out;
  uint64_t at_ns = 0;
  for (uint64_t id = 1; id <= 25; ++id) {
    at_ns += random() % 400'000;
    runtime::NewSequence sequence;
    sequence.sequence = {id << 32};
    std::vector<TokenId> prompt;
    for (uint64_t i = random() % 4 * 100; i > 0; --i) prompt.push_back(static_cast<TokenId>(i));
    for (uint64_t i = random() % 300 + 1; i > 0; --i)
      prompt.push_back(static_cast<TokenId>(1000 * id + i));
    sequence.prompt = std::move(prompt);
    sequence.max_tokens = 1 + static_cast<uint32_t>(random() % 400);
    const uint64_t deadline_us =
        random() % 6 == 0 ? (at_ns + 200'000 + random() % 400'000) / 1000 : 0;
    out.push_back({at_ns, {{id}, {std::move(sequence)}, 0, deadline_us}, 0});
    if (random() % 6 == 0) out.back().aborted_ns = at_ns + 1 + random() % 500'000;
  }
  return out;
}

runtime::VirtualServerConfig config(uint64_t stages, bool small, bool has_host, bool caches) {
  runtime::VirtualServerConfig out;
  out.scheduler.chunk_tokens = 256;
  out.scheduler.max_running = 6;
  out.scheduler.context_length = 8192;
  out.scheduler.prefix_cache = caches;
  out.scheduler.plans_in_flight = static_cast<uint32_t>(stages) + 1;
  out.cache.tree = {64, 64, 0};
  out.cache.arena = {uint64_t{64} * (small ? 40 : 400), 64, 64};
  out.cache.host_bytes = has_host ? 64 * 40 : 0;
  out.check = true;
  return out;
}

// Everything at its time; the server's events before the clients'.
void play(const std::vector<Arrival>& arrivals, runtime::VirtualServer& server, bool skip) {
  std::vector<std::pair<uint64_t, size_t>> calls;  // an index, twice the arrival's, odd: its abort
  for (size_t i = 0; i < arrivals.size(); ++i) {
    calls.emplace_back(arrivals[i].at_ns, 2 * i);
    if (arrivals[i].aborted_ns > 0) calls.emplace_back(arrivals[i].aborted_ns, 2 * i + 1);
  }
  std::sort(calls.begin(), calls.end());
  for (const auto& [at_ns, what] : calls) {
    for (;;) {
      const auto next = server.next_ns();
      if (!next || *next > at_ns) break;
      if (skip && server.skip(at_ns, UINT32_MAX)) continue;
      server.advance(*next);
    }
    server.advance(std::max(at_ns, server.now_ns()));
    const runtime::Submit& submit = arrivals[what / 2].submit;
    if (what % 2 == 0) {
      server.submit(submit);
    } else {
      server.abort(submit.request);
    }
    server.settle();
  }
  while (skip && server.next_ns())
    if (!server.skip(UINT64_MAX, 1000)) server.advance(*server.next_ns());
  server.drain();
}

}  // namespace

TEST_CASE("Skipped steps leave every event as it is when each step is made", "[sim]") {
  const uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  uint64_t skipped = 0;
  for (uint64_t round = 0; round < 16; ++round) {
    const uint64_t stages = 1 + round % 3;
    const bool small = round % 2 == 0, has_host = round % 4 >= 2, caches = round % 5 != 4;
    INFO("round " << round);
    const auto arrivals = random_arrivals(random);
    Recorder with, without;
    uint64_t ends[2] = {};
    for (const bool skip : {false, true}) {
      StagedClock clock(stages);
      runtime::VirtualServer server(config(stages, small, has_host, caches), clock, answer,
                                    skip ? with : without);
      play(arrivals, server, skip);
      ends[skip] = server.now_ns();
      CHECK(server.idle());
    }
    CHECK(ends[0] == ends[1]);
    const auto [a, b] =
        std::mismatch(without.all.begin(), without.all.end(), with.all.begin(), with.all.end());
    INFO("made:    " << std::string(a, std::min(a + 200, without.all.end())));
    INFO("skipped: " << std::string(b, std::min(b + 200, with.all.end())));
    REQUIRE((a == without.all.end() && b == with.all.end()));
    CHECK(without.skipped_steps == 0);
    skipped += with.skipped_steps;
  }
  CHECK(skipped > 1000);
}
