// What a cached prefix may change: how much is computed, and nothing else. Scheduler, cache and
// engine together, one request after the other.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/support/effort.hpp"
#include "tests/support/prompts.hpp"
#include "tests/support/real_models.hpp"

namespace {

using runtime::NewSequence;
using support::asking;
using support::cached;
using support::check_same;
using support::CoreServer;
using support::head;
using support::Heard;
using support::join;
using support::kPoison;
using support::random_tokens;
using support::Tokens;

support::ModelMaker toy(std::shared_ptr<uint64_t> violations) {
  return support::toy_maker(std::move(violations));
}

struct Shape {
  uint32_t page_tokens = 64, chunk_tokens = 1000, plans_in_flight = 2;
  bool unified = true;
  uint32_t grid() const { return std::lcm(64u, page_tokens); }
};

runtime::SchedulerConfig config_of(const Shape& shape, bool prefix_cache = true) {
  runtime::SchedulerConfig config;
  config.context_length = 1000;
  config.page_tokens = shape.page_tokens;
  config.chunk_tokens = shape.chunk_tokens;
  config.plans_in_flight = shape.plans_in_flight;
  config.max_running = 4;
  config.prefix_cache = prefix_cache;
  return config;
}

support::SmallCache large_cache(const Shape& shape) {
  support::SmallCache cache;
  cache.slots = 60;
  cache.pages = 8000 / shape.page_tokens;
  cache.unified = shape.unified;
  return cache;
}

// One prompt length on one server: cold, again, branched, branched again, and the next turn.
void check_length(const support::ModelMaker& maker, const Shape& shape, uint32_t length,
                  uint32_t vocab) {
  CAPTURE(shape.page_tokens, shape.chunk_tokens, shape.plans_in_flight, shape.unified, length);
  std::mt19937_64 rng(length);
  const uint32_t grid = shape.grid();
  CoreServer off(config_of(shape, false), large_cache(shape), maker, 1);
  CoreServer server(config_of(shape), large_cache(shape), maker, length);
  const Tokens prompt = random_tokens(rng, length, vocab);

  const Heard& cold = server.ask(asking(prompt, 9));
  check_same(cold, off.ask(asking(prompt, 9)));
  CHECK(cached(cold) == 0);
  const Heard& warm = server.ask(asking(prompt, 9));
  check_same(warm, cold);
  CHECK(cached(warm) == (length - 1) / grid * grid);  // an identical prompt always hits

  // Two prompts that leave this one half-way: the first plants the branch, the second finds it.
  const uint32_t shared = length / 2;
  const Tokens one = join(head(prompt, shared), random_tokens(rng, 40, vocab));
  const Tokens two = join(head(prompt, shared), random_tokens(rng, 70, vocab));
  check_same(server.ask(asking(one, 5)), off.ask(asking(one, 5)));
  const Heard& branched = server.ask(asking(two, 5));
  check_same(branched, off.ask(asking(two, 5)));
  CHECK(cached(branched) >= shared / grid * grid);
  CHECK(cached(branched) % grid == 0);

  // The answer and a new question: all but the last token was consumed.
  const Heard& first = server.ask(asking(prompt, 2 * grid + 3));
  const Tokens turn = join(join(prompt, first.tokens), random_tokens(rng, 20, vocab));
  const Heard& second = server.ask(asking(turn, 5));
  check_same(second, off.ask(asking(turn, 5)));
  CHECK(cached(second) == (length + 2 * grid + 2) / grid * grid);

  CHECK(off.stats().state_hit_tokens_total == 0);
  CHECK(off.cache().counters().donated == 0);
  CHECK(server.drained());
  CHECK(off.drained());
}

}  // namespace

TEST_CASE("Cold, warm and branched answers are equal, on both sides of every grid multiple",
          "[runtime][property]") {
  const auto violations = std::make_shared<uint64_t>(0);
  for (const uint32_t page_tokens : {1u, 16u, 64u, 128u}) {
    for (const uint32_t chunk_tokens : {64u, 100u, 1000u}) {
      const Shape shape{page_tokens, chunk_tokens, 1 + chunk_tokens % 3, page_tokens != 16};
      for (const uint32_t multiple : {64u, 128u, 192u, 256u, 384u}) {
        for (const uint32_t length : {multiple - 1, multiple, multiple + 1})
          check_length(toy(violations), shape, length, 23);
      }
      check_length(toy(violations), shape, 1, 23);
    }
  }
  CHECK(*violations == 0);
}

TEST_CASE("Cold, warm and branched answers of the real model are equal", "[runtime][slow]") {
  const auto preset = GENERATE(std::string("tiny-k3"), std::string("tiny-linear"));
  support::RealModels models(preset, 11);
  check_length(models.maker(1), {16, 1000, 1, true}, 64, models.vocab());
  if (support::kSanitized) return;
  check_length(models.maker(2), {64, 100, 2, true}, 129, models.vocab());
  check_length(models.maker(2), {128, 128, 2, false}, 255, models.vocab());
}

TEST_CASE("The first branch plants a checkpoint, the second restores it without replay",
          "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(3);
  const Shape shape;
  CoreServer server(config_of(shape), large_cache(shape), toy(violations), 3);
  const Tokens prompt = random_tokens(rng, 400, 23);
  const auto branch = [&] {
    return asking(join(head(prompt, 200), random_tokens(rng, 100, 23)), 3);
  };
  server.ask(asking(prompt, 3));
  CHECK(server.stats().kv_hit_tokens_total == 0);
  CHECK(cached(server.ask(branch())) == 0);  // KV up to 192, but no state there
  CHECK(server.stats().kv_hit_tokens_total == 192);
  CHECK(server.stats().recomputed_tokens_total == 192);
  CHECK(cached(server.ask(branch())) == 192);
  CHECK(cached(server.ask(branch())) == 192);
  CHECK(server.stats().recomputed_tokens_total == 192);
  CHECK(server.cache().counters().branches == 1);
  CHECK(*violations == 0);
}

TEST_CASE("A long prompt plants checkpoints at chunk ends, so that later branches replay less",
          "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(4);
  const Shape shape{64, 64, 2, true};
  CoreServer server(config_of(shape), large_cache(shape), toy(violations), 3);
  const Tokens prompt = random_tokens(rng, 900, 23);
  server.ask(asking(prompt, 1));
  const Heard& heard = server.ask(asking(join(head(prompt, 700), random_tokens(rng, 10, 23)), 3));
  CHECK(cached(heard) >= 384);
  CHECK(server.cache().counters().donated <= 7);
}

TEST_CASE("Prompt log-probabilities are computed whatever is cached, and still leave checkpoints",
          "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(5);
  const Shape shape{16, 100, 2, true};
  CoreServer server(config_of(shape), large_cache(shape), toy(violations), 3);
  NewSequence asked = asking(random_tokens(rng, 200, 23), 4);
  asked.prompt_logprobs = true;
  const Heard& first = server.ask(asked);
  const Heard& second = server.ask(asked);
  REQUIRE(first.prompt.size() == 199);
  REQUIRE(second.prompt.size() == 199);
  for (size_t i = 0; i < first.prompt.size(); ++i)
    CHECK(support::same_bits(first.prompt[i], second.prompt[i]));
  CHECK(cached(second) == 0);
  asked.prompt_logprobs = false;
  const Heard& third = server.ask(asked);
  CHECK(cached(third) == 192);
  check_same(third, first);
  CHECK(*violations == 0);
}

TEST_CASE("Namespaces share nothing", "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(6);
  CoreServer server(config_of({}), large_cache({}), toy(violations), 3);
  NewSequence asked = asking(random_tokens(rng, 200, 23), 4);
  const Heard& first = server.ask(asked);
  asked.name_space = 1;
  const Heard& other = server.ask(asked);
  CHECK(cached(other) == 0);
  check_same(other, first);
  CHECK(cached(server.ask(asked)) == 192);
}

TEST_CASE("A request whose values are not finite leaves nothing behind", "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(7);
  const Shape shape{64, 64, 2, true};
  CoreServer server(config_of(shape), large_cache(shape), toy(violations), 3);
  Tokens sick = random_tokens(rng, 300, 23);
  sick[100] = kPoison;
  const Heard& heard = server.ask(asking(sick, 4));
  CHECK(heard.finished.at(0).reason == runtime::FinishReason::kError);
  CHECK(server.cache().owners().states.cached == 0);
  CHECK(server.drained());
  const Tokens well = join(head(sick, 90), random_tokens(rng, 50, 23));
  CHECK(server.ask(asking(well, 4)).finished.at(0).reason == runtime::FinishReason::kLength);
}

TEST_CASE("What lies behind a stop string is not offered to later requests", "[runtime]") {
  const auto violations = std::make_shared<uint64_t>(0);
  std::mt19937_64 rng(8);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CoreServer server(config_of({}), large_cache({}), toy(violations), seed);
    NewSequence asked = asking(random_tokens(rng, 100, 23), 100);
    asked.sequence = {7};
    server.stop_after(7, 27);  // the state after 128 positions is saved one token later
    server.submit({{7}, {asked}, 0, 0});
    server.drain();
    const Heard& heard = server.heard().at(7);
    REQUIRE(heard.tokens.size() >= 27);
    CHECK(server.cache().counters().donated == 1);  // the one before the prompt's end
    CHECK(server.drained());
  }
}

TEST_CASE("A tiny memory evicts, moves and retracts, and every answer stays the same",
          "[runtime][property]") {
  const auto violations = std::make_shared<uint64_t>(0);
  uint64_t retracted = 0, moves = 0, evicted = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    const Shape shape{16, 64, 2, seed % 3 != 0};
    support::SmallCache tiny;
    tiny.slots = 5;
    tiny.pages = 36;
    tiny.unified = shape.unified;
    runtime::SchedulerConfig config = config_of(shape);
    config.context_length = 500;
    CoreServer server(config, tiny, toy(violations), seed);
    CoreServer off(config_of(shape, false), large_cache(shape), toy(violations), 1);
    const Tokens base = random_tokens(rng, 200, 23);
    std::map<uint64_t, NewSequence> asked;
    for (uint64_t id = 1; id <= 8; ++id) {
      asked[id] = asking(join(head(base, rng() % 200), random_tokens(rng, 1 + rng() % 60, 23)),
                         static_cast<uint32_t>(20 + rng() % 120), id);
      asked[id].sequence = {id};
      server.submit({{id}, {asked[id]}, 0, 0});
      for (uint64_t i = rng() % 40; i > 0; --i) server.step();
    }
    server.drain();
    for (const auto& [id, sequence] : asked) check_same(server.heard().at(id), off.ask(sequence));
    CHECK(server.drained());
    retracted += server.stats().retracted_total;
    moves += server.stats().moves_total;
    evicted += server.cache().counters().evicted_slots[0];
  }
  CHECK(*violations == 0);
  CAPTURE(retracted, moves, evicted);
  CHECK(retracted > 0);
  CHECK(moves > 0);
  CHECK(evicted > 0);
}
