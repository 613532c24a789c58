// The promise of the whole design: a request's bytes do not depend on what else the server did.
// Random schedules through scheduler, cache core and engine, each sequence compared with the same
// sequence run alone. SLUICE_SEED=N replays a failing seed first.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/support/effort.hpp"
#include "tests/support/real_models.hpp"
#include "tests/support/schedule_run.hpp"
#include "tests/support/toy_model.hpp"

namespace {

constexpr uint64_t kRealSchedules = support::effort(12);  // of each preset

using support::Heard;
using support::same_bits;

uint64_t first_seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("SLUICE_SEED");
    const uint64_t chosen =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("schedule exactness: seeds from SLUICE_SEED=%llu\n",
                static_cast<unsigned long long>(chosen));
    std::fflush(stdout);
    return chosen;
  }();
  return seed;
}

void compare(const Heard& heard, const Heard& alone) {
  REQUIRE(alone.finished.size() == 1);
  REQUIRE(heard.finished.size() == 1);
  CHECK(heard.finished[0].reason != runtime::FinishReason::kError);
  REQUIRE(heard.tokens.size() <= alone.tokens.size());
  CHECK(std::equal(heard.tokens.begin(), heard.tokens.end(), alone.tokens.begin()));
  for (size_t i = 0; i < heard.tokens.size(); ++i) {
    REQUIRE(heard.logprobs[i].has_value() == alone.logprobs[i].has_value());
    if (heard.logprobs[i]) REQUIRE(same_bits(*heard.logprobs[i], *alone.logprobs[i]));
  }
  REQUIRE(heard.prompts <= 1);
  if (heard.prompts == 1) {
    REQUIRE(heard.prompt.size() == alone.prompt.size());
    for (size_t i = 0; i < heard.prompt.size(); ++i)
      REQUIRE(same_bits(heard.prompt[i], alone.prompt[i]));
  }
  if (heard.cut_short()) return;
  CHECK(heard.tokens.size() == alone.tokens.size());
  CHECK(heard.prompts == alone.prompts);
  CHECK(heard.finished[0].reason == alone.finished[0].reason);
  CHECK(heard.finished[0].stop_id == alone.finished[0].stop_id);
  CHECK(heard.finished[0].output_tokens == alone.finished[0].output_tokens);
}

struct Seen {  // how much of what can go wrong the schedules reached
  uint64_t retracted = 0, ghosts = 0, aborted = 0, cut_short = 0, whole = 0;
  uint64_t restored_tokens = 0, snapshots = 0, skipped = 0, evicted = 0, moves = 0, branches = 0;
  uint64_t staged_out = 0, staged_in = 0, host_evicted = 0, host_resumed = 0;
};

void check_schedule(const support::ScheduleLimits& limits, const support::ModelMaker& scheduled,
                    const support::ModelMaker& alone_model, uint64_t seed, Seen& seen) {
  CAPTURE(seed);
  const support::RandomSchedule schedule = support::ScheduleMaker(limits, seed).make();
  CAPTURE(schedule.config.chunk_tokens, schedule.config.page_tokens, schedule.cache.pages,
          schedule.cache.slots, schedule.cache.unified);
  const auto alone = support::run_alone(schedule, alone_model);
  const auto outcome = support::run_schedule(schedule, scheduled, seed);
  CHECK(outcome.drained);
  REQUIRE(outcome.heard.size() == alone.size());
  for (const auto& [sequence, heard] : outcome.heard) {
    CAPTURE(sequence);
    compare(heard, alone.at(sequence));
    ++(heard.cut_short() ? seen.cut_short : seen.whole);
  }
  seen.retracted += outcome.stats.retracted_total;
  seen.ghosts += outcome.stats.ghost_rows_total;
  seen.aborted += outcome.stats.aborted_total;
  seen.restored_tokens += outcome.stats.state_hit_tokens_total;
  seen.snapshots += outcome.stats.snapshots_total;
  seen.skipped += outcome.stats.snapshots_skipped_total;
  seen.moves += outcome.stats.moves_total;
  seen.evicted += outcome.cache.evicted_slots[0];
  seen.branches += outcome.cache.branches;
  for (const size_t kind : {0, 1}) {
    seen.staged_out += outcome.cache.staged_out[kind];
    seen.staged_in += outcome.cache.staged_in[kind];
    seen.host_evicted += outcome.cache.host_evicted[kind];
  }
  seen.host_resumed += outcome.stats.host_resumed_total;
}

}  // namespace

TEST_CASE("Any schedule of the toy model gives each request the bytes it has alone",
          "[runtime][property]") {
  support::ScheduleLimits limits;
  limits.requests = 10;
  limits.chunk_tokens = {1, 2, 3, 5, 7, 16, 33, 64, 200};
  limits.page_tokens = {1, 4, 16, 64, 128};
  limits.prompt_tokens = 400;
  limits.output_tokens = 90;
  limits.last_arrival = 400;
  uint64_t violations = 0;
  std::vector<std::shared_ptr<const uint64_t>> counters;
  const support::ModelMaker make = [&](uint32_t page_tokens) {
    support::ToyOptions options;
    options.vocab_size = limits.vocab_size;
    options.page_tokens = page_tokens;
    auto model = std::make_unique<support::ToyModel>(options);
    counters.push_back(model->violations());
    return model;
  };
  Seen seen;
  for (uint64_t i = 0; i < 200; ++i) {
    check_schedule(limits, make, make, first_seed() + i, seen);
    for (const auto& counter : counters) violations += *counter;
    counters.clear();
    REQUIRE(violations == 0);
  }
  CAPTURE(seen.retracted, seen.ghosts, seen.aborted, seen.cut_short, seen.whole);
  CAPTURE(seen.restored_tokens, seen.snapshots, seen.skipped, seen.evicted, seen.moves,
          seen.branches);
  CAPTURE(seen.staged_out, seen.staged_in, seen.host_evicted, seen.host_resumed);
  CHECK(seen.retracted > 20);
  CHECK(seen.ghosts > 20);
  CHECK(seen.aborted > 5);
  CHECK(seen.cut_short > 5);
  CHECK(seen.whole > 200);
  CHECK(seen.restored_tokens > 10000);
  CHECK(seen.snapshots > 500);
  CHECK(seen.skipped > 20);
  CHECK(seen.evicted > 20);
  CHECK(seen.moves > 20);
  CHECK(seen.branches > 5);
  CHECK(seen.staged_out > 100);
  CHECK(seen.staged_in > 100);
  CHECK(seen.host_evicted > 20);
  CHECK(seen.host_resumed > 0);
}

TEST_CASE(
    "Any schedule of the real model gives each request the bytes it has alone, on 1 and 2 threads",
    "[runtime][property][slow]") {
  const auto preset = GENERATE(std::string("tiny-k3"), std::string("tiny-linear"));
  CAPTURE(preset);
  support::RealModels models(preset, first_seed());
  support::ScheduleLimits limits;
  limits.vocab_size = models.vocab();
  limits.requests = 6;
  limits.prompt_tokens = 150;  // crosses two multiples of the grid
  limits.output_tokens = 32;
  limits.last_arrival = 250;
  limits.chunk_tokens = {17, 31, 64, 128};
  limits.page_tokens = {16, 64, 128};
  Seen seen;
  for (uint64_t i = 0; i < kRealSchedules; ++i) {
    check_schedule(limits, models.maker(1 + i % 2), models.maker(1), first_seed() + i, seen);
  }
}
