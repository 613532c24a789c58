// What leaves the device for host memory comes back byte for byte, or not at all. Scheduler, cache
// and engine together.
#include <catch2/catch.hpp>
#include <cstdio>
#include <numeric>

#include "tests/support/effort.hpp"
#include "tests/support/prompts.hpp"
#include "tests/support/real_models.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {


using memory::BlockKind;
using support::asking;
using support::cached;
using support::check_same;
using support::CoreServer;
using support::Heard;
using support::join;
using support::random_tokens;
using support::Tokens;

runtime::SchedulerConfig config_of(uint32_t page_tokens, uint32_t chunk_tokens = 1000) {
  runtime::SchedulerConfig config;
  config.context_length = 1000;
  config.page_tokens = page_tokens;
  config.chunk_tokens = chunk_tokens;
  config.max_running = 4;
  return config;
}

// Room for one sequence of `positions` and hardly more, so that the next one pushes it out.
support::SmallCache narrow(uint32_t page_tokens, uint32_t positions, bool unified, double host) {
  support::SmallCache cache;
  cache.slots = 4;
  cache.pages = positions / page_tokens + 2;
  cache.unified = unified;
  cache.host = host;
  return cache;
}

support::SmallCache wide(uint32_t page_tokens) {
  support::SmallCache cache;
  cache.slots = 400;
  cache.pages = 20000 / page_tokens;
  return cache;
}

// Pushes out what is cached on the device.
void press(CoreServer& server, std::mt19937_64& rng, uint32_t length, uint32_t vocab) {
  server.ask(asking(random_tokens(rng, length, vocab), 3));
  server.ask(asking(random_tokens(rng, length, vocab), 3));
}

// One prompt length: cold, after a round trip through the host, branched there, and the next turn.
void check_length(const support::ModelMaker& maker, uint32_t page_tokens, uint32_t chunk_tokens,
                  bool unified, uint32_t length, uint32_t vocab) {
  CAPTURE(page_tokens, chunk_tokens, unified, length);
  const uint32_t grid = std::lcm(64u, page_tokens);
  std::mt19937_64 rng(length);
  CoreServer off(config_of(page_tokens), wide(page_tokens), maker, 1);
  const uint32_t most = length + 2 * grid + 40;
  CoreServer server(config_of(page_tokens, chunk_tokens), narrow(page_tokens, most, unified, 30),
                    maker, length);
  const Tokens prompt = random_tokens(rng, length, vocab);
  const Heard& cold = server.ask(asking(prompt, 9));
  check_same(cold, off.ask(asking(prompt, 9)));
  press(server, rng, most, vocab);
  const uint64_t staged = server.cache().counters().host_restored;
  const Heard& back = server.ask(asking(prompt, 9));
  check_same(back, cold);
  CHECK(cached(back) == (length - 1) / grid * grid);
  CHECK(server.cache().counters().host_restored == staged + (length > grid ? 1 : 0));

  const Tokens branch = join(support::head(prompt, length / 2), random_tokens(rng, 40, vocab));
  press(server, rng, most, vocab);
  check_same(server.ask(asking(branch, 5)), off.ask(asking(branch, 5)));

  const Heard& first = server.ask(asking(prompt, 2 * grid + 3));
  const Tokens turn = join(join(prompt, first.tokens), random_tokens(rng, 20, vocab));
  press(server, rng, most, vocab);
  const Heard& second = server.ask(asking(turn, 5));
  check_same(second, off.ask(asking(turn, 5)));
  CHECK(cached(second) == (length + 2 * grid + 2) / grid * grid);
  CHECK(server.stats().restarted_total == 0);
  CHECK(server.drained());
}

// Two prompts of one length, one on the host and one on the device when the process ends.
void check_restart(const support::ModelMaker& maker, uint32_t page_tokens, uint32_t length,
                   uint32_t vocab) {
  CAPTURE(page_tokens, length);
  const support::TemporaryDirectory folder;
  const uint32_t grid = std::lcm(64u, page_tokens);
  std::mt19937_64 rng(length);
  CoreServer off(config_of(page_tokens), wide(page_tokens), maker, 1);
  const auto cache = narrow(page_tokens, length + 30, length % 2 == 0, 30);
  const Tokens host_prompt = random_tokens(rng, length, vocab);
  const Tokens prompt = random_tokens(rng, length, vocab);
  CoreServer before(config_of(page_tokens), cache, maker, length);
  before.ask(asking(host_prompt, 9));
  before.ask(asking(prompt, 9));
  const auto written = before.spill(folder.path());
  CHECK(written.trouble == "");
  CHECK(written.whole);
  CHECK((written.states >= 2) == (length + 8 >= grid));  // 9 tokens, the last is no input

  CoreServer after(config_of(page_tokens), cache, maker, length + 1);
  const auto loaded = after.load(folder.path());
  CHECK(loaded.trouble == "");
  CHECK(loaded.states == written.states);
  CHECK(loaded.pages == written.pages);
  for (const Tokens& one : {prompt, host_prompt}) {
    const Heard& warm = after.ask(asking(one, 9));
    check_same(warm, off.ask(asking(one, 9)));
    CHECK(cached(warm) == (length - 1) / grid * grid);
  }
  const Tokens branch = join(support::head(prompt, length / 2), random_tokens(rng, 40, vocab));
  check_same(after.ask(asking(branch, 5)), off.ask(asking(branch, 5)));
  CHECK(after.stats().restarted_total == 0);
  CHECK(after.drained());
}

void spoil(CoreServer& server, std::optional<BlockKind> kind) {
  for (const auto& [block, copy] : server.cache().host().copies()) {
    if (!kind || copy.kind == *kind) server.host().mutable_data(block)[5] ^= std::byte{1};
  }
}

}  // namespace

TEST_CASE("A host round trip changes no byte, on both sides of every grid multiple",
          "[runtime][property]") {
  const auto violations = std::make_shared<uint64_t>(0);
  for (const uint32_t page_tokens : {1u, 16u, 64u, 128u}) {
    for (const uint32_t multiple : {64u, 128u, 192u, 256u, 384u}) {
      for (const uint32_t length : {multiple - 1, multiple, multiple + 1})
        check_length(support::toy_maker(violations), page_tokens, length % 2 == 0 ? 100 : 1000,
                     length % 3 != 0, length, 23);
    }
  }
  CHECK(*violations == 0);
}

TEST_CASE("A host round trip of the real model changes no byte", "[runtime][slow]") {
  const auto preset = GENERATE(std::string("tiny-k3"), std::string("tiny-linear"));
  support::RealModels models(preset, 12);
  constexpr uint32_t kLengths[] = {65, 63, 64, 127, 128, 129};
  for (size_t i = 0; i < support::effort(std::size(kLengths)); ++i)
    check_length(models.maker(2), 64, 100, true, kLengths[i], models.vocab());
  if (support::kSanitized) return;
  check_length(models.maker(1), 16, 1000, true, 193, models.vocab());
  check_length(models.maker(2), 128, 128, false, 257, models.vocab());
}

TEST_CASE("A restart from a file changes no byte, on both sides of every grid multiple",
          "[runtime][property]") {
  const auto violations = std::make_shared<uint64_t>(0);
  for (const uint32_t page_tokens : {1u, 16u, 64u, 128u}) {
    for (const uint32_t multiple : {64u, 128u, 256u}) {
      for (const uint32_t length : {multiple - 1, multiple, multiple + 1})
        check_restart(support::toy_maker(violations), page_tokens, length, 23);
    }
  }
  CHECK(*violations == 0);
}

TEST_CASE("A restart of the real model from a file changes no byte", "[runtime][slow]") {
  const auto preset = GENERATE(std::string("tiny-k3"), std::string("tiny-linear"));
  support::RealModels models(preset, 13);
  constexpr uint32_t kLengths[] = {65, 63, 64, 129};
  for (size_t i = 0; i < support::effort(std::size(kLengths)); ++i)
    check_restart(models.maker(2), 64, kLengths[i], models.vocab());
  if (support::kSanitized) return;
  check_restart(models.maker(1), 16, 192, models.vocab());
}

TEST_CASE("A spill that runs out of time, or finds changed bytes, leaves a smaller file",
          "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  const support::TemporaryDirectory folder;
  std::mt19937_64 rng(9);
  CoreServer server(config_of(16), narrow(16, 400, true, 20), support::toy_maker(violations), 1);
  const Tokens prompt = random_tokens(rng, 300, 23);
  const Heard cold = server.ask(asking(prompt, 9));
  press(server, rng, 380, 23);
  const auto whole = server.spill(folder.path());
  spoil(server, BlockKind::kState);
  const auto without = server.spill(folder.path());
  CHECK(without.pages == whole.pages);
  CHECK(without.states < whole.states);
  CHECK(without.whole);
  CoreServer next(config_of(16), narrow(16, 400, true, 20), support::toy_maker(violations), 2);
  CHECK(next.load(folder.path()).states == without.states);
  check_same(next.ask(asking(prompt, 9)), cold);
  const auto late = server.spill(folder.path(), 1);
  CHECK_FALSE(late.whole);
  CHECK(late.states + late.pages == 0);
  CHECK(late.trouble == "");
  CHECK(next.load(folder.path()).states == 0);
}

TEST_CASE("Changed bytes on the host are found, forgotten, and never served", "[runtime]") {
  const auto kind = GENERATE(std::optional<BlockKind>(), std::optional(BlockKind::kState),
                             std::optional(BlockKind::kPage));
  const auto plans = GENERATE(1u, 2u);
  const auto violations = std::make_shared<uint64_t>(0);
  const auto maker = support::toy_maker(violations);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed, plans);
    std::mt19937_64 rng(seed);
    auto config = config_of(16, 70);
    config.plans_in_flight = plans;
    CoreServer server(config, narrow(16, 400, seed % 2 == 0, 20), maker, seed);
    const Tokens prompt = random_tokens(rng, 300, 23);
    const Heard cold = server.ask(asking(prompt, 30));
    press(server, rng, 380, 23);
    spoil(server, kind);
    const Heard& again = server.ask(asking(prompt, 30));
    check_same(again, cold);
    CHECK(cached(again) == 0);
    CHECK(server.stats().restarted_total == 1);
    CHECK(server.cache().counters().host_lost > 0);
    CHECK(server.cache().counters().host_lost == server.cache().counters().staged_in[0] +
                                                     (kind == BlockKind::kState ? 0 : 16) -
                                                     (kind == BlockKind::kPage ? 1 : 0));
    // What was computed anew takes the place of what was spoiled.
    const Heard& third = server.ask(asking(prompt, 30));
    check_same(third, cold);
    CHECK(cached(third) == 256);
    CHECK(server.stats().restarted_total == 1);
    CHECK(server.drained());
  }
  CHECK(*violations == 0);
}

TEST_CASE("A retracted sequence goes on from its checkpoint through the host", "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  const auto maker = support::toy_maker(violations);
  uint64_t retracted = 0, resumed = 0, recomputed = 0, recomputed_without = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    std::map<uint64_t, runtime::NewSequence> asked;
    for (uint64_t id = 1; id <= 4; ++id) {
      asked[id] = asking(random_tokens(rng, 90 + rng() % 60, 23), 300, id);
      asked[id].sequence = {id};
    }
    const auto run = [&](double host) {
      support::SmallCache cache = narrow(16, 700, true, host);
      cache.slots = 8;
      auto server = std::make_unique<CoreServer>(config_of(16), cache, maker, seed);
      for (const auto& [id, sequence] : asked) server->submit({{id}, {sequence}, 0, 0});
      server->drain();
      CHECK(server->drained());
      return server;
    };
    CoreServer off(config_of(16), wide(16), maker, 1);
    const auto with = run(4), without = run(0);
    for (const auto& [id, sequence] : asked) {
      const Heard alone = off.ask(sequence);
      check_same(with->heard().at(id), alone);
      check_same(without->heard().at(id), alone);
    }
    retracted += with->stats().retracted_total;
    resumed += with->stats().host_resumed_total;
    recomputed += with->stats().recomputed_tokens_total;
    recomputed_without += without->stats().recomputed_tokens_total;
  }
  CAPTURE(retracted, resumed, recomputed, recomputed_without);
  CHECK(*violations == 0);
  CHECK(retracted > 20);
  CHECK(resumed > 10);
  CHECK(recomputed < recomputed_without);
}

TEST_CASE("A request whose values are not finite leaves nothing of its namespace on the host",
          "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(3);
  CoreServer server(config_of(16, 64), narrow(16, 400, true, 20), support::toy_maker(violations),
                    3);
  server.ask(asking(random_tokens(rng, 300, 23), 4));
  press(server, rng, 380, 23);
  CHECK_FALSE(server.cache().host().empty());
  Tokens sick = random_tokens(rng, 300, 23);
  sick[200] = support::kPoison;
  CHECK(server.ask(asking(sick, 4)).finished.at(0).reason == runtime::FinishReason::kError);
  CHECK(server.cache().host().empty());
  CHECK(server.drained());
}

TEST_CASE("Host memory of three devices serves what an unbounded device would", "[runtime]") {
  // Sessions that take turns in random order: each turn is the conversation so far and something
  // new. All of them together are about three and a half times what the device holds.
  constexpr uint32_t kSessions = 14, kTurns = 6;
  const auto violations = std::make_shared<uint64_t>(0);
  const auto maker = support::toy_maker(violations);
  uint64_t served = 0, unbounded = 0, alone = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    support::SmallCache device;
    device.slots = 12;
    device.pages = 100;
    device.unified = true;
    support::SmallCache with_host = device;
    with_host.host = 3;
    CoreServer tiered(config_of(16, 256), with_host, maker, seed);
    CoreServer narrow_only(config_of(16, 256), device, maker, seed);
    CoreServer unlimited(config_of(16, 256), wide(16), maker, seed);
    auto no_cache = config_of(16, 256);
    no_cache.prefix_cache = false;
    CoreServer cold(no_cache, wide(16), maker, seed);
    std::mt19937_64 rng(seed);
    const Tokens system = random_tokens(rng, 100, 23);
    std::vector<Tokens> sessions(kSessions, system);
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < kSessions * kTurns; ++i) order.push_back(i % kSessions);
    std::shuffle(order.begin(), order.end(), rng);
    for (const uint32_t session : order) {
      Tokens& so_far = sessions[session];
      so_far = join(so_far, random_tokens(rng, 20 + rng() % 60, 23));
      const auto turn = asking(so_far, static_cast<uint32_t>(5 + rng() % 40));
      const Heard& answer = tiered.ask(turn);
      const Heard& free_answer = unlimited.ask(turn);
      check_same(answer, cold.ask(turn));
      check_same(answer, free_answer);
      served += cached(answer);
      unbounded += cached(free_answer);
      alone += cached(narrow_only.ask(turn));
      so_far = join(so_far, answer.tokens);
    }
    CHECK(unlimited.cache().counters().evicted_slots[0] == 0);
    CHECK(tiered.cache().counters().evicted_slots[0] > 0);
  }
  const double share = static_cast<double>(served) / static_cast<double>(unbounded);
  const double without = static_cast<double>(alone) / static_cast<double>(unbounded);
  std::printf(
      "host memory of 3 devices: %.1f %% of the tokens an unbounded device spares, %.1f %% "
      "without it\n",
      100 * share, 100 * without);
  CHECK(*violations == 0);
  CHECK(share >= 0.95);
  CHECK(without < 0.8);
}
