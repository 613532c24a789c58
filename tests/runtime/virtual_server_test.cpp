#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "runtime/checkpoint_planner.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace {

using runtime::DeviceTimes;
using runtime::DeviceWork;
using runtime::SequenceId;
using runtime::TokenId;

// So much for a step and so much for each of its tokens.
class LinearClock final : public runtime::DeviceClock {
 public:
  DeviceTimes start(const DeviceWork& work, uint64_t now_ns) override {
    if (work.forward.empty()) return {now_ns, now_ns};
    const uint64_t done_ns = now_ns + 1000 + 10 * work.forward.tokens();
    return {done_ns, done_ns};
  }
};

TokenId answer(SequenceId sequence, uint32_t index) {
  return static_cast<TokenId>(sequence.value >> 32) * 1000 + static_cast<TokenId>(index);
}

struct Heard {
  std::vector<TokenId> tokens;
  std::vector<uint64_t> times;
  std::optional<runtime::SequenceFinished> finished;
};

class Listener final : public runtime::VirtualServerSink {
 public:
  void on_event(uint64_t now_ns, const runtime::SessionEvent& event) override {
    if (const auto* token = std::get_if<runtime::SequenceToken>(&event)) {
      heard[token->sequence.value].tokens.push_back(token->token);
      heard[token->sequence.value].times.push_back(now_ns);
    } else if (const auto* end = std::get_if<runtime::SequenceFinished>(&event)) {
      heard[end->sequence.value].finished = *end;
    }
  }
  void on_hit(uint64_t, const runtime::CacheHit& hit) override { hits.push_back(hit); }
  void on_step(uint64_t begin_ns, uint64_t end_ns, const runtime::StepShape& shape) override {
    CHECK(begin_ns >= last_end_ns);  // one after another
    last_end_ns = end_ns;
    tokens += shape.tokens();
    ++steps;
  }
  void on_skipped(const runtime::SkippedSteps&) override { FAIL("nobody asked for it"); }
  std::map<uint64_t, Heard> heard;
  std::vector<runtime::CacheHit> hits;
  uint64_t last_end_ns = 0, tokens = 0, steps = 0;
};

runtime::VirtualServerConfig config(uint32_t slots, uint32_t pages, double host_blocks = 0) {
  runtime::VirtualServerConfig out;
  out.scheduler.chunk_tokens = 256;
  out.scheduler.max_running = 8;
  out.scheduler.context_length = 8192;
  out.cache.tree = {64, 64, 0};
  out.cache.arena = {uint64_t{64} * (slots + pages), 64, 64};
  out.cache.host_bytes = static_cast<uint64_t>(host_blocks * 64);
  out.check = true;
  return out;
}

runtime::Submit submit(uint64_t id, std::vector<TokenId> prompt, uint32_t max_tokens) {
  runtime::NewSequence sequence;
  sequence.sequence = {id << 32};
  sequence.prompt = std::move(prompt);
  sequence.max_tokens = max_tokens;
  return {{id}, {std::move(sequence)}, 0, 0};
}

std::vector<TokenId> count_from(TokenId first, uint32_t tokens) {
  std::vector<TokenId> out;
  for (uint32_t i = 0; i < tokens; ++i) out.push_back(first + static_cast<TokenId>(i));
  return out;
}

}  // namespace

TEST_CASE("Times of a lone request are its chunks and then one step a token", "[sim]") {
  LinearClock clock;
  Listener heard;
  runtime::VirtualServer server(config(16, 64), clock, answer, heard);
  server.submit(submit(1, count_from(0, 300), 3));
  server.drain();
  const Heard& one = heard.heard.at(uint64_t{1} << 32);
  // 256 tokens, then 44 and the first answer, then a step for each of two more.
  const uint64_t first = (1000 + 2560) + (1000 + 440);
  CHECK(one.times == std::vector<uint64_t>{first, first + 1010, first + 2020});
  CHECK(one.tokens == std::vector<TokenId>{1000, 1001, 1002});
  REQUIRE(one.finished);
  CHECK(one.finished->reason == runtime::FinishReason::kLength);
  CHECK(heard.tokens >= 302);  // and maybe a ghost row
  CHECK(server.idle());
}

TEST_CASE("A request that goes on from another finds its KV and its state", "[sim]") {
  LinearClock clock;
  Listener heard;
  runtime::VirtualServer server(config(16, 128), clock, answer, heard);
  server.submit(submit(1, count_from(0, 300), 2));
  server.drain();
  const uint64_t then = server.now_ns();
  auto prompt = count_from(0, 300);
  prompt.push_back(7);
  for (const TokenId token : count_from(5000, 99)) prompt.push_back(token);
  server.submit(submit(2, prompt, 2));
  server.drain();
  REQUIRE(heard.hits.size() == 2);
  CHECK(heard.hits[1].looked_up == 400);
  CHECK(heard.hits[1].kv == 256);
  CHECK(heard.hits[1].state == 256);
  const Heard& second = heard.heard.at(uint64_t{2} << 32);
  CHECK(second.times.front() - then == 1000 + 10 * (400 - 256));
  CHECK(second.finished->cached_tokens == 256);
}

TEST_CASE("Random traffic on a small memory ends with every token and nothing held", "[sim]") {
  const uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 6; ++round) {
    LinearClock clock;
    Listener heard;
    const bool has_host = round % 2 == 1;
    runtime::VirtualServer server(config(6, 24, has_host ? 40 : 0), clock, answer, heard);
    std::map<uint64_t, uint32_t> wanted;
    std::map<uint64_t, bool> left;
    for (uint64_t id = 1; id <= 40; ++id) {
      const auto shared = static_cast<uint32_t>(random() % 4) * 100;
      auto prompt = count_from(1, 1 + shared);
      for (const TokenId token :
           count_from(static_cast<TokenId>(10000 + 1000 * id),
                      static_cast<uint32_t>(random() % 300)))
        prompt.push_back(token);
      wanted[id] = 1 + static_cast<uint32_t>(random() % 200);
      server.submit(submit(id, std::move(prompt), wanted[id]));
      server.settle();
      for (int steps = static_cast<int>(random() % 12); steps > 0 && server.next_ns(); --steps)
        server.advance(*server.next_ns());
      if (random() % 8 == 0) {
        server.abort({id});
        left[id] = true;
      }
    }
    server.drain();  // checks the move log too
    CHECK(server.cache().ledger().all().empty());
    for (const auto& [id, tokens] : wanted) {
      const Heard& one = heard.heard.at(id << 32);
      REQUIRE(one.finished);
      if (!left[id]) REQUIRE(one.tokens.size() == tokens);
      for (uint32_t i = 0; i < one.tokens.size(); ++i)
        REQUIRE(one.tokens[i] == answer({id << 32}, i));
      REQUIRE(std::is_sorted(one.times.begin(), one.times.end()));
    }
  }
}

TEST_CASE("A deadline ends a request at its time, between two steps too", "[sim]") {
  LinearClock clock;
  Listener heard;
  runtime::VirtualServer server(config(16, 64), clock, answer, heard);
  auto late = submit(1, count_from(0, 200), 1000);
  late.deadline_us = 50;
  server.submit(std::move(late));
  server.drain();
  const Heard& one = heard.heard.at(uint64_t{1} << 32);
  REQUIRE(one.finished);
  CHECK(one.finished->reason == runtime::FinishReason::kAbort);
  CHECK(one.finished->error->code == kernels::ErrorCode::kTimeout);
  CHECK(one.times.back() < 50'000);
  CHECK(one.tokens.size() == (50'000 - 3000) / 1010 + 1);  // 1000 + 10 * 200 us is the first
}
