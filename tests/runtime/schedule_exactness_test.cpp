// The promise of the whole design: a request's bytes do not depend on what else the server did.
// Random schedules through scheduler, cache core and engine, each sequence compared with the same
// sequence run alone. SLUICE_SEED=N replays a failing seed first.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "runtime/checkpoint_writer.hpp"
#include "runtime/model_config.hpp"
#include "runtime/weights.hpp"
#include "tests/support/schedule_run.hpp"
#include "tests/support/toy_model.hpp"

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kRealSchedules = 8;  // of each preset; the sanitizers cost a factor of ten
#else
constexpr uint64_t kRealSchedules = 100;
#endif

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

// A model that several engines in turn use: weights are loaded once.
class BorrowedModel final : public runtime::Model {
 public:
  explicit BorrowedModel(runtime::Model& model) : model_(model) {}
  uint32_t vocab_size() const override { return model_.vocab_size(); }
  runtime::CacheGeometry geometry() const override { return model_.geometry(); }
  uint64_t weight_bytes() const override { return model_.weight_bytes(); }
  void forward(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory) override {
    model_.forward(batch, memory);
  }
  void logits(size_t first, size_t count, float* out) override { model_.logits(first, count, out); }

 private:
  runtime::Model& model_;
};

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
};

void check_schedule(const support::ScheduleLimits& limits, const support::ModelMaker& scheduled,
                    const support::ModelMaker& alone_model, uint64_t seed, Seen& seen) {
  CAPTURE(seed);
  const support::RandomSchedule schedule = support::ScheduleMaker(limits, seed).make();
  CAPTURE(schedule.config.chunk_tokens, schedule.config.page_tokens,
          schedule.config.capacity.pages.total);
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
}

}  // namespace

TEST_CASE("Any schedule of the toy model gives each request the bytes it has alone",
          "[runtime][property]") {
  support::ScheduleLimits limits;
  limits.requests = 10;
  limits.chunk_tokens = {1, 2, 3, 5, 7, 16, 33, 64, 200};
  limits.page_tokens = {1, 2, 4, 8, 64};
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
  CHECK(seen.retracted > 20);
  CHECK(seen.ghosts > 20);
  CHECK(seen.aborted > 5);
  CHECK(seen.cut_short > 5);
  CHECK(seen.whole > 200);
}

TEST_CASE(
    "Any schedule of the real model gives each request the bytes it has alone, on 1 and 2 threads",
    "[runtime][property][slow]") {
  const auto preset = GENERATE(std::string("tiny-k3"), std::string("tiny-linear"));
  CAPTURE(preset);
  const auto directory = std::filesystem::temp_directory_path() /
                         ("sluice-schedules-" + preset + std::to_string(::getpid()));
  runtime::write_checkpoint({preset, directory.string(), first_seed()});
  const auto config = runtime::ModelConfig::load(directory.string());
  const auto weights = runtime::WeightsFile::load(directory.string());
  std::map<std::pair<unsigned, uint32_t>, std::unique_ptr<runtime::Model>>
      models;  // by (threads, page size)
  std::map<unsigned, std::unique_ptr<kernels::Ops>> ops;
  const auto with_threads = [&](unsigned threads) {
    return support::ModelMaker([&, threads](uint32_t page_tokens) {
      auto& model = models[{threads, page_tokens}];
      if (!ops[threads]) ops[threads] = kernels::make_cpu_ops(threads);
      if (!model) {
        runtime::ModelOptions options;
        options.page_tokens = page_tokens;
        model = runtime::load_hybrid_model(config, weights, *ops[threads], options);
      }
      return std::make_unique<BorrowedModel>(*model);
    });
  };
  support::ScheduleLimits limits;
  limits.vocab_size = config.vocab;
  limits.requests = 3;
  limits.prompt_tokens = 70;  // crosses the blocks of 64
  limits.output_tokens = 32;
  limits.chunk_tokens = {3, 17, 31, 64, 128};
  limits.page_tokens = {4, 8, 64};
  Seen seen;
  for (uint64_t i = 0; i < kRealSchedules; ++i) {
    check_schedule(limits, with_threads(1 + i % 2), with_threads(1), first_seed() + i, seen);
  }
  std::filesystem::remove_all(directory);
  if (kRealSchedules < 50) return;
  CHECK(seen.retracted > 0);
  CHECK(seen.ghosts > 0);
}
