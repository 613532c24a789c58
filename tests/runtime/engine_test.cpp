// The engine on plans written by hand, with a model that notices any misuse of slots, pages and
// positions.
#include "runtime/engine.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "runtime/sampler.hpp"
#include "tests/support/toy_model.hpp"

namespace {

using memory::BlockKind;
using runtime::PageId;
using runtime::PlanRow;
using runtime::RowResult;
using runtime::SamplingParams;
using runtime::SequenceId;
using runtime::SlotId;
using runtime::StepPlan;
using runtime::TokenId;
using Tokens = std::vector<TokenId>;

constexpr uint32_t kSlots = 4, kPages = 16;
constexpr uint32_t kFirstVirtual = 1000;  // so that a virtual index is never a physical block
constexpr TokenId kPoison = 99;           // outside the vocabulary, so that no row ever samples it

SamplingParams sampled(uint64_t seed) {
  SamplingParams params;
  params.seed = seed;
  return params;
}

// An engine, the plan being written, and the ids a cache manager would have handed out.
class Bench {
 public:
  explicit Bench(uint32_t page_tokens = 4) {
    support::ToyOptions options;
    options.page_tokens = page_tokens;
    options.poison = kPoison;
    auto model = std::make_unique<support::ToyModel>(options);
    violations_ = model->violations();
    oracle_ = std::make_unique<support::ToyModel>(options);
    const auto layout = runtime::EngineLayout::side_by_side(model->geometry(), kSlots, kPages);
    engine_ = std::make_unique<runtime::Engine>(*device_, std::move(model), layout);
  }
  ~Bench() { CHECK(*violations_ == 0); }

  // Physical places are scattered on purpose: virtual index and physical block differ.
  SlotId bind_slot(uint32_t index) {
    const SlotId id{kFirstVirtual + index, ++slot_generation_[index]};
    const memory::Bind bind{BlockKind::kState, id.index, id.generation, (index * 3 + 1) % kSlots};
    plan_.commands.push_back(bind);
    return id;
  }
  std::vector<PageId> bind_pages(std::vector<uint32_t> indices) {
    std::vector<PageId> ids;
    for (const uint32_t index : indices) {
      ids.push_back({kFirstVirtual + index, ++page_generation_[index]});
      const memory::Bind bind{BlockKind::kPage, ids.back().index, ids.back().generation,
                              (index * 5 + 3) % kPages};
      plan_.commands.push_back(bind);
    }
    return ids;
  }
  void clear(SlotId slot) { plan_.commands.push_back(memory::Clear{slot}); }
  void close(SequenceId sequence) { plan_.commands.push_back(runtime::Close{{sequence}}); }
  void forward(std::vector<PlanRow> rows) {
    plan_.commands.push_back(runtime::Forward{step_++, std::move(rows)});
  }
  std::vector<RowResult> run() {
    auto result = engine_->run(std::exchange(plan_, {}));
    if (!result) return {};
    CHECK(result->step + 1 == step_);
    return result->rows;
  }

  // What the sampler chooses after `tokens`, from the model's definition alone.
  TokenId expected(const Tokens& tokens, const SamplingParams& params, size_t prompt_tokens) const {
    runtime::PenaltyCounts counts;
    for (size_t i = 0; i < tokens.size(); ++i) {
      i < prompt_tokens ? counts.add_prompt(tokens[i]) : counts.add_output(tokens[i]);
    }
    auto logits = oracle_->logits_after(tokens);
    return *runtime::sample({logits, &params, &counts, static_cast<uint32_t>(tokens.size()),
                             static_cast<uint32_t>(tokens.size() - prompt_tokens)});
  }
  Tokens expected_output(Tokens tokens, const SamplingParams& params, size_t count) const {
    const size_t prompt_tokens = tokens.size();
    while (count-- > 0) tokens.push_back(expected(tokens, params, prompt_tokens));
    return {tokens.begin() + static_cast<ptrdiff_t>(prompt_tokens), tokens.end()};
  }
  const support::ToyModel& oracle() const { return *oracle_; }

 private:
  std::unique_ptr<kernels::Device> device_ = kernels::make_cpu_device();
  std::unique_ptr<support::ToyModel> oracle_;
  std::shared_ptr<const uint64_t> violations_;
  std::unique_ptr<runtime::Engine> engine_;
  StepPlan plan_;
  uint64_t step_ = 0;
  std::map<uint32_t, uint32_t> slot_generation_, page_generation_;
};

runtime::SequenceStart start_of(const Tokens& tokens, size_t prompt_tokens,
                                const SamplingParams& params, SlotId slot,
                                bool prompt_logprobs = false) {
  return {params, tokens, static_cast<uint32_t>(prompt_tokens), prompt_logprobs, slot};
}

PlanRow row(uint64_t sequence, uint32_t position, uint32_t count, bool sample,
            std::vector<PageId> pages = {}) {
  return {SequenceId{sequence}, std::nullopt, position, count, std::move(pages), sample};
}

PlanRow first_row(uint64_t sequence, runtime::SequenceStart start, uint32_t count,
                  std::vector<PageId> pages, bool sample) {
  PlanRow made = row(sequence, 0, count, sample, std::move(pages));
  made.start = std::move(start);
  return made;
}

}  // namespace

TEST_CASE("Any cut of the prompt into chunks samples the same tokens", "[runtime]") {
  const Tokens prompt{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  const auto params = sampled(42);
  for (const std::vector<uint32_t>& chunks :
       {std::vector<uint32_t>{10}, {1, 9}, {4, 4, 2}, {3, 3, 3, 1}}) {
    Bench bench;
    const auto slot = bench.bind_slot(2);
    auto pages = bench.bind_pages({7, 1, 4, 9});
    bench.clear(slot);
    uint32_t position = 0;
    Tokens output;
    for (const uint32_t chunk : chunks) {
      const bool last = position + chunk == prompt.size();
      if (position == 0) {
        bench.forward(
            {first_row(1, start_of(prompt, prompt.size(), params, slot), chunk, pages, last)});
      } else {
        bench.forward({row(1, position, chunk, last)});
      }
      const auto rows = bench.run();
      REQUIRE(rows.size() == 1);
      CHECK(rows[0].token.has_value() == last);
      CHECK(rows[0].finite);
      position += chunk;
      CHECK(rows[0].token_position == position);
      if (last) output.push_back(*rows[0].token);
    }
    for (; output.size() < 6; ++position) {  // decode: the scheduler never names the token
      bench.forward({row(1, position, 1, true)});
      output.push_back(bench.run().at(0).token.value());
    }
    CHECK(output == bench.expected_output(prompt, params, 6));
  }
}

TEST_CASE("Pages come one at a time as decode crosses them", "[runtime]") {
  Bench bench(2);
  const Tokens prompt{8, 2};
  const auto params = sampled(5);
  const auto slot = bench.bind_slot(0);
  bench.clear(slot);
  bench.forward({first_row(1, start_of(prompt, 2, params, slot), 2, bench.bind_pages({3}), true)});
  // bind_pages was evaluated while the forward was written, so its Binds precede it in the plan.
  Tokens output{bench.run().at(0).token.value()};
  for (uint32_t position = 2; position < 9; ++position) {
    std::vector<PageId> pages;
    if (position % 2 == 0) pages = bench.bind_pages({position / 2 + 6});
    bench.forward({row(1, position, 1, true, pages)});
    output.push_back(bench.run().at(0).token.value());
  }
  CHECK(output == bench.expected_output(prompt, params, 8));
}

TEST_CASE("Sequences share a batch without touching one another, and a plan may lack a Forward",
          "[runtime]") {
  Bench bench;
  const Tokens one{1, 2, 3}, two{9, 8, 7, 6, 5};
  const auto slot_one = bench.bind_slot(1), slot_two = bench.bind_slot(3);
  const auto pages_one = bench.bind_pages({0, 2}), pages_two = bench.bind_pages({1, 3});
  bench.clear(slot_one);
  bench.clear(slot_two);
  CHECK(bench.run().empty());
  bench.forward({first_row(2, start_of(two, 5, sampled(2), slot_two), 2, pages_two, false),
                 first_row(1, start_of(one, 3, sampled(1), slot_one), 3, pages_one, true)});
  auto rows = bench.run();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].sequence == SequenceId{2});
  CHECK(!rows[0].token);
  const Tokens expected_one = bench.expected_output(one, sampled(1), 3);
  const Tokens expected_two = bench.expected_output(two, sampled(2), 2);
  CHECK(rows[1].token == expected_one[0]);
  bench.forward({row(1, 3, 1, true), row(2, 2, 3, true)});
  rows = bench.run();
  CHECK(rows[0].token == expected_one[1]);
  CHECK(rows[1].token == expected_two[0]);
  bench.forward({row(2, 5, 1, true), row(1, 4, 1, true)});
  rows = bench.run();
  CHECK(rows[0].token == expected_two[1]);
  CHECK(rows[1].token == expected_one[2]);
  bench.forward({});
  CHECK(bench.run().empty());
}

TEST_CASE("A ghost row runs like any other, and its slot is clean for the next owner",
          "[runtime]") {
  Bench bench;
  const Tokens old{4, 4, 4}, young{7, 1};
  auto slot = bench.bind_slot(0);
  auto pages = bench.bind_pages({0, 1});
  bench.clear(slot);
  bench.forward({first_row(1, start_of(old, 3, sampled(1), slot), 3, pages, true)});
  bench.run();
  bench.forward({row(1, 3, 1, true)});  // planned before the end of sequence 1 was known
  bench.run();
  // The next plan: the same blocks under new generations, the old record dropped, stale bytes
  // everywhere.
  slot = bench.bind_slot(0);
  pages = bench.bind_pages({1, 0});
  bench.clear(slot);
  bench.close(SequenceId{1});
  bench.forward({first_row(2, start_of(young, 2, sampled(9), slot), 2, pages, true)});
  Tokens output{bench.run().at(0).token.value()};
  for (uint32_t position = 2; position < 6; ++position) {
    bench.forward({row(2, position, 1, true)});
    output.push_back(bench.run().at(0).token.value());
  }
  CHECK(output == bench.expected_output(young, sampled(9), 5));
}

TEST_CASE("Without Clear a reused slot would be noticed", "[runtime]") {
  support::ToyModel model({});
  const auto geometry = model.geometry();
  std::vector<std::byte> state(geometry.state_bytes), page(geometry.page_bytes);
  const runtime::CacheMemory memory{state.data(), state.size(), page.data(), page.size()};
  const Tokens tokens{1, 2};
  const std::vector<kernels::Segment> segments{{0, 2, 0, 0, 0}};
  const std::vector<uint32_t> pages{0}, logit_rows{1};
  std::vector<float> logits(model.vocab_size());
  const runtime::ForwardBatch batch{tokens, {segments, pages, 2}, logit_rows};
  model.forward(batch, memory);
  model.logits(0, 1, logits.data());
  CHECK(logits == model.logits_after(tokens));
  CHECK(*model.violations() == 0);
  model.forward(batch, memory);
  model.logits(0, 1, logits.data());
  CHECK(logits != model.logits_after(tokens));
  CHECK(*model.violations() > 0);
}

TEST_CASE("A retracted sequence resumes with the same tokens: its record is rebuilt from them",
          "[runtime]") {
  auto params = sampled(77);
  params.repetition_penalty = 1.3f;
  params.frequency_penalty = 0.7f;
  params.presence_penalty = 0.4f;
  params.min_tokens = 5;
  params.stop_ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Tokens prompt{3, 14, 15};
  Bench bench;
  const Tokens expected = bench.expected_output(prompt, params, 9);
  auto slot = bench.bind_slot(0);
  bench.clear(slot);
  bench.forward(
      {first_row(1, start_of(prompt, 3, params, slot), 3, bench.bind_pages({0, 1, 2}), true)});
  Tokens output{bench.run().at(0).token.value()};
  for (uint32_t position = 3; position < 6; ++position) {
    bench.forward({row(1, position, 1, true)});
    output.push_back(bench.run().at(0).token.value());
  }
  bench.forward(
      {row(1, 6, 1, true)});  // in flight when the sequence is retracted: recomputed below
  CHECK(bench.run().at(0).token == expected[4]);
  Tokens known = prompt;
  known.insert(known.end(), output.begin(), output.end());
  slot = bench.bind_slot(2);
  bench.clear(slot);
  bench.forward(
      {first_row(1, start_of(known, 3, params, slot), 4, bench.bind_pages({5, 4, 3}), false)});
  bench.run();
  bench.forward({row(1, 4, 3, true)});
  output.push_back(bench.run().at(0).token.value());
  for (uint32_t position = 7; position < 11; ++position) {
    bench.forward({row(1, position, 1, true)});
    output.push_back(bench.run().at(0).token.value());
  }
  CHECK(output == expected);
}

TEST_CASE("Non-finite logits end their own row and no other", "[runtime]") {
  Bench bench;
  const Tokens bad{1, kPoison, 2}, good{5, 6, 7};
  const auto bad_slot = bench.bind_slot(0), good_slot = bench.bind_slot(1);
  bench.clear(bad_slot);
  bench.clear(good_slot);
  auto bad_params = sampled(1);
  bad_params.top_logprobs = 2;
  bench.forward(
      {first_row(1, start_of(bad, 3, bad_params, bad_slot), 3, bench.bind_pages({0, 1}), true),
       first_row(2, start_of(good, 3, sampled(2), good_slot), 3, bench.bind_pages({2, 3}), true)});
  const Tokens expected = bench.expected_output(good, sampled(2), 3);
  auto rows = bench.run();
  CHECK(!rows[0].finite);
  CHECK(!rows[0].token);
  CHECK(!rows[0].logprobs);
  CHECK(rows[1].finite);
  CHECK(rows[1].token == expected[0]);
  bench.forward({row(1, 3, 1, true), row(2, 3, 1, true)});  // sent before the failure was known
  rows = bench.run();
  CHECK(!rows[0].finite);
  CHECK(rows[1].token == expected[1]);
  bench.close(SequenceId{1});
  bench.forward({row(2, 4, 1, true)});
  CHECK(bench.run().at(0).token == expected[2]);
}

TEST_CASE("Prompt log-probabilities cover positions 1 to n-1 once, however the prompt is cut",
          "[runtime]") {
  const Tokens prompt{3, 1, 4, 1, 5, 9, 2};
  auto params = sampled(42);
  params.top_logprobs = 3;
  for (const std::vector<uint32_t>& chunks : {std::vector<uint32_t>{7}, {1, 6}, {3, 3, 1}}) {
    for (const bool sample : {false, true}) {  // false: max_tokens 0
      Bench bench;
      const auto slot = bench.bind_slot(1);
      const auto pages = bench.bind_pages({0, 1});
      bench.clear(slot);
      std::vector<runtime::PositionLogprobs> got;
      uint32_t position = 0;
      for (const uint32_t chunk : chunks) {
        const bool last = position + chunk == prompt.size();
        PlanRow next =
            row(1, position, chunk, last && sample, position == 0 ? pages : std::vector<PageId>{});
        if (position == 0) next.start = start_of(prompt, prompt.size(), params, slot, true);
        bench.forward({next});
        const auto rows = bench.run();
        got.insert(got.end(), rows[0].prompt.begin(), rows[0].prompt.end());
        CHECK(rows[0].token.has_value() == (last && sample));
        CHECK(rows[0].logprobs.has_value() == (last && sample));
        position += chunk;
      }
      REQUIRE(got.size() == prompt.size() - 1);
      for (size_t i = 0; i < got.size(); ++i) {
        const Tokens seen(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(i) + 1);
        const auto expected =
            runtime::position_logprobs(bench.oracle().logits_after(seen), prompt[i + 1], 3);
        CHECK(got[i].chosen.token == prompt[i + 1]);
        CHECK(got[i].chosen.logprob == expected.chosen.logprob);
        REQUIRE(got[i].top.size() == 3);
        CHECK(got[i].top[2].token == expected.top[2].token);
      }
    }
  }
}

TEST_CASE("Log-probabilities of a sampled token come from the logits before any penalty",
          "[runtime]") {
  Bench bench;
  const Tokens prompt{2, 2, 2, 2};
  auto params = sampled(6);
  params.repetition_penalty = 5;
  params.logit_bias = {{11, 100.0f}};
  params.top_logprobs = 1;
  const auto slot = bench.bind_slot(1);
  bench.clear(slot);
  bench.forward({first_row(1, start_of(prompt, 4, params, slot), 4, bench.bind_pages({0}), true)});
  const auto rows = bench.run();
  CHECK(rows[0].token == 11);
  const auto expected = runtime::position_logprobs(bench.oracle().logits_after(prompt), 11, 1);
  REQUIRE(rows[0].logprobs);
  CHECK(rows[0].logprobs->chosen.logprob == expected.chosen.logprob);
  CHECK(rows[0].logprobs->top.at(0).token == expected.top.at(0).token);
}

TEST_CASE("The null model's next token depends on the last one alone and needs real blocks",
          "[runtime]") {
  const auto model = runtime::make_null_model(1000, {});
  CHECK(model->geometry().state_bytes > 0);
  CHECK(model->geometry().page_bytes > 0);
  const Tokens tokens{5, 6, 5};
  const std::vector<kernels::Segment> segments{{0, 2, 0, 0, 0}, {2, 1, 0, 1, 1}};
  const std::vector<uint32_t> pages{0, 1}, logit_rows{0, 1, 2};
  std::vector<float> logits(3 * 1000);
  model->forward({tokens, {segments, pages, 3}, logit_rows}, {});
  model->logits(0, 1, logits.data());  // in two groups
  model->logits(1, 2, logits.data() + 1000);
  const std::vector<float> first(logits.begin(), logits.begin() + 1000);
  CHECK(first == std::vector<float>(logits.begin() + 2000, logits.end()));
  CHECK(first != std::vector<float>(logits.begin() + 1000, logits.begin() + 2000));
}
