// Random histories: arrivals, aborts, stops, deadlines, NaN rows, shared beginnings, tiny pools,
// and any order of deliveries that mailboxes allow. SLUICE_SEED=N repeats one.
#include <cstdlib>
#include <random>

#include "scheduler_world.hpp"

namespace {

using namespace runtime_test;

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed)
      : rng_(seed), long_(rng_() % 3 == 0), world_(random_settings()), document_(150) {
    for (TokenId& token : document_) token = static_cast<TokenId>(below(kVocab));
  }

  void run() {
    for (int i = 0; i < 400; ++i) act();
    world_.drain();
    for (const auto& [id, life] : world_.lives) judge(id, life);
  }
  const World& world() const { return world_; }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(rng_() % n); }
  uint32_t pick(std::initializer_list<uint32_t> values) {
    return *(values.begin() + below(static_cast<uint32_t>(values.size())));
  }

  Settings random_settings() {
    const uint32_t page_tokens = pick({1, 2, 4, 8});
    const uint32_t least = long_ ? 190 : 24;
    const uint32_t pages = least / page_tokens + below(2 * least / page_tokens);
    const uint32_t chunk = long_ ? pick({16, 64, 100}) : pick({1, 2, 3, 5, 8, 16, 64});
    Settings s = settings(1 + below(7), pages, page_tokens, chunk);
    s.cache.unified = below(2) == 0;
    s.scheduler.max_running = 1 + below(8);
    s.scheduler.plans_in_flight = 1 + below(2);
    s.scheduler.context_length = long_ ? 190 : 60;
    return s;
  }

  void submit() {
    runtime::Submit submit;
    submit.request = {++requests_};
    submit.priority = below(4) == 0 ? static_cast<int32_t>(below(3)) - 1 : 0;
    if (below(12) == 0) submit.deadline_us = world_.now_us + 1 + below(300);
    const uint32_t count = below(5) == 0 ? 3 : 1;
    for (uint32_t i = 0; i < count; ++i) {
      runtime::NewSequence sequence;
      sequence.sequence = {++world_.last_id};
      sequence.prompt = prompt();
      sequence.max_tokens = below(8) == 0 ? 0 : 1 + below(20);
      sequence.sampling.seed = rng_();
      sequence.sampling.ignore_eos = below(2) == 0;
      if (below(4) == 0) sequence.sampling.stop_ids = {static_cast<TokenId>(below(kVocab))};
      sequence.prompt_logprobs = below(3) == 0;
      if (below(15) == 0) world_.worker.nan_at[sequence.sequence] = 1 + below(20);
      submit.sequences.push_back(std::move(sequence));
    }
    world_.submit(std::move(submit));
  }

  std::vector<TokenId> prompt() {
    std::vector<TokenId> tokens;
    if (long_ && below(3) > 0) tokens.assign(document_.begin(), document_.begin() + 1 + below(149));
    for (uint32_t i = below(below(4) == 0 ? 20 : 6) + 1; i > 0; --i)
      tokens.push_back(static_cast<TokenId>(below(kVocab)));
    return tokens;
  }

  void act() {
    world_.now_us += below(4);
    switch (below(16)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
        if (below(3) == 0) abort_one();
        break;
      case 3:
        if (below(3) == 0) stop_one();
        break;
      case 4:
        world_.handle(runtime::Tick{});
        break;
      case 5:
      case 6:
      case 7:
        world_.serve_cache();
        break;
      case 8:
      case 9:
      case 10:
        world_.deliver_answer();
        break;
      case 11:
      case 12:
      case 13:
        world_.run_plan();
        break;
      default:
        world_.deliver_result();
        break;
    }
  }
  SequenceId any_sequence() { return {1 + below(static_cast<uint32_t>(world_.last_id))}; }
  void abort_one() {
    if (world_.last_id == 0) return;
    const SequenceId id = any_sequence();
    for (const auto& [other, life] : world_.lives) {
      if (life.request == world_.lives.at(id).request) cut_.insert(other);
    }
    world_.abort(id);
  }
  void stop_one() {
    if (world_.last_id == 0) return;
    const SequenceId id = any_sequence();
    cut_.insert(id);
    world_.handle(runtime::StopSequence{id});
  }

  void judge(SequenceId id, const Life& life) {
    CAPTURE(id.value);
    const runtime::SequenceFinished& end = life.finished.front();
    std::optional<uint32_t> nan;
    if (const auto found = world_.worker.nan_at.find(id); found != world_.worker.nan_at.end())
      nan = found->second;
    const Solo solo = run_alone(life.asked, nan);
    REQUIRE(end.prompt_tokens == life.asked.prompt.size());
    for (const runtime::SequencePrompt& prompt : life.prompts) {
      REQUIRE(life.asked.prompt_logprobs);
      REQUIRE(prompt.prompt.size() == solo.prompt_logprobs.size());
      for (size_t i = 0; i < prompt.prompt.size(); ++i) {
        REQUIRE(prompt.prompt[i].chosen.token == life.asked.prompt[i + 1]);
        REQUIRE(prompt.prompt[i].chosen.logprob == solo.prompt_logprobs[i]);
      }
    }
    const bool refused = end.reason == runtime::FinishReason::kError &&
                         end.error->code == kernels::ErrorCode::kInvalid;
    const bool timed_out = end.error && end.error->code == kernels::ErrorCode::kTimeout;
    if (refused || timed_out || (cut_.contains(id) && end.reason != solo.reason)) {
      REQUIRE(life.output.size() <= solo.output.size());
      REQUIRE(std::equal(life.output.begin(), life.output.end(), solo.output.begin()));
      if (refused) REQUIRE(life.rows_planned == 0);
      return;
    }
    if (cut_.contains(id) && end.reason == runtime::FinishReason::kStop && !end.stop_id) return;
    REQUIRE(life.output == solo.output);
    REQUIRE(end.reason == solo.reason);
    REQUIRE(end.stop_id == solo.stop_id);
    REQUIRE(end.output_tokens == solo.output.size() + (solo.stop_id ? 1 : 0));
    const bool whole_prompt = solo.reason != runtime::FinishReason::kError;
    if (life.asked.prompt_logprobs && whole_prompt) REQUIRE(life.prompts.size() == 1);
  }

  std::mt19937_64 rng_;
  bool long_;  // prompts that pass multiples of the grid
  World world_;
  std::vector<TokenId> document_;
  uint64_t requests_ = 0;
  std::set<SequenceId> cut_;  // aborted or stopped by the test
};

std::vector<uint64_t> seeds(uint64_t fixed, uint64_t fresh) {
  if (const char* one = std::getenv("SLUICE_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<uint64_t> all;
  for (uint64_t i = 1; i <= fixed; ++i) all.push_back(i);
  std::random_device device;
  for (uint64_t i = 0; i < fresh; ++i) all.push_back(device());
  return all;
}

}  // namespace

TEST_CASE("every history ends each sequence once, with the tokens it yields alone",
          "[runtime][scheduler][property]") {
  uint64_t retracted = 0, ghosts = 0, aborted = 0, finished = 0, restored = 0, moves = 0;
  for (const uint64_t seed : seeds(300, 100)) {
    CAPTURE(seed);
    Fuzz fuzz(seed);
    fuzz.run();
    const runtime::SchedulerStats stats = fuzz.world().scheduler.stats();
    retracted += stats.retracted_total;
    ghosts += stats.ghost_rows_total;
    aborted += stats.aborted_total;
    finished += fuzz.world().lives.size();
    restored += stats.state_hit_tokens_total;
    moves += stats.moves_total;
  }
  if (std::getenv("SLUICE_SEED")) return;
  // The histories reach what they are meant to reach.
  CHECK(retracted > 100);
  CHECK(ghosts > 100);
  CHECK(aborted > 100);
  CHECK(finished > 5000);
  CHECK(restored > 10000);
  CHECK(moves > 100);
}

TEST_CASE(
    "the oldest sequence of the highest priority ends in bounded steps under endless arrivals",
    "[runtime][scheduler][property]") {
  for (const uint64_t seed : seeds(40, 10)) {
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    Settings s = settings(4, 20, 2, 8);
    World world(s);
    for (int i = 0; i < 4; ++i)
      world.submit_one({1, 2, 3}, 25);  // the pool is full of others when it arrives
    for (int i = 0; i < 8; ++i) world.step();
    const SequenceId id = world.submit_one(std::vector<TokenId>(12, 3), 20);
    int steps = 0;
    while (world.lives.at(id).finished.empty()) {
      REQUIRE(++steps < 600);
      if (rng() % 2 == 0)
        world.submit_one({static_cast<TokenId>(rng() % kVocab)},
                         1 + static_cast<uint32_t>(rng() % 30), rng() % 8 == 0 ? -1 : 0);
      world.step();
    }
    CHECK(world.end_of(id).reason == runtime::FinishReason::kLength);
  }
}
