// Drafts on a modelled server: what blocks commit, what trimming keeps, and what time both take.
#include "runtime/sim/speculation.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "runtime/sim/modelled_worker.hpp"
#include "runtime/sim/step_model_clock.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace {

using runtime::SequenceId;
using runtime::Speculation;
using runtime::SpeculationConfig;

const std::string kConfig = SLUICE_SOURCE_DIR "/config";

const runtime::StepModel& model() {
  static const runtime::StepModel priced = [] {
    runtime::StepOptions options;
    options.drafts = true;
    return runtime::StepModel(runtime::read_device(kConfig + "/devices/gb300.toml"),
                              runtime::ModelGeometry::load(kConfig + "/geometries/kimi-k3.json"),
                              runtime::parse_layout("TP8"), options);
  }();
  return priced;
}

SpeculationConfig profile(std::vector<double> acceptance, double spread = 0, bool trim = false) {
  SpeculationConfig config;
  config.draft_tokens = static_cast<uint32_t>(acceptance.size());
  config.acceptance = std::move(acceptance);
  config.spread = spread;
  config.trim = trim;
  return config;
}

// What `rows` sequences cost in `steps` tokens each.
double run_us(Speculation& speculation, uint32_t rows, uint32_t steps) {
  std::vector<Speculation::Block> blocks(rows);
  double us = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    runtime::StepShape shape;
    for (uint32_t row = 0; row < rows; ++row) {
      speculation.advance(blocks[row], SequenceId{uint64_t{row + 1} << 32}, step);
      shape.add_decode(1024 + step, blocks[row].width, 1.0 / blocks[row].committed);
    }
    speculation.end_step(shape.decode_context);
    us += model().step_us(shape);
  }
  return us;
}

class Times final : public runtime::VirtualServerSink {
 public:
  void on_event(uint64_t now_ns, const runtime::SessionEvent& event) override {
    if (std::holds_alternative<runtime::SequenceToken>(event)) times.push_back(now_ns);
  }
  void on_skipped(const runtime::SkippedSteps&) override { FAIL("a server with drafts skips none"); }
  std::vector<uint64_t> times;
};

// When a lone request of 64 tokens hears each of its answer.
std::vector<uint64_t> token_times(Speculation& speculation, uint32_t answers) {
  runtime::VirtualServerConfig config;
  config.scheduler.chunk_tokens = 256;
  config.cache.tree = {64, 64, 0};
  config.cache.arena = {uint64_t{64} * 256, 64, 64};
  config.speculation = &speculation;
  runtime::StepModelClock clock(model(), 64);
  Times heard;
  runtime::VirtualServer server(
      config, clock, [](SequenceId, uint32_t index) { return runtime::TokenId(index); }, heard);
  runtime::NewSequence sequence;
  sequence.sequence = {uint64_t{1} << 32};
  sequence.prompt = std::vector<runtime::TokenId>(64, 5);
  sequence.max_tokens = answers;
  server.submit({{1}, {std::move(sequence)}, 0, 0});
  server.drain();
  return heard.times;
}

double verify_us(uint64_t position, uint32_t width) {
  runtime::StepShape shape;
  shape.add_decode(position, width);
  return model().step_us(shape);
}

}  // namespace

TEST_CASE("Blocks commit what a profile says on average", "[sim]") {
  const std::vector<double> acceptance = {0.9, 0.8, 0.6, 0.5};
  // 1 + 0.9 + 0.9 * 0.8 + ...
  const double length = 1 + 0.9 + 0.72 + 0.432 + 0.216;
  for (const double spread : {0.0, 0.5}) {
    Speculation speculation(profile(acceptance, spread), model());
    for (uint64_t sequence = 1; sequence <= 20000; ++sequence) {
      Speculation::Block block;
      speculation.advance(block, SequenceId{sequence << 32}, 17);
      REQUIRE(block.first == 17);
      REQUIRE(block.width == 5);
      REQUIRE(block.committed >= 1);
      REQUIRE(block.committed <= 5);
    }
    CHECK(speculation.accept_length() == Approx(length).epsilon(0.02));
    CHECK(speculation.verify_width() == 5);
  }
}

TEST_CASE("A block is drawn by seed, sequence and index alone", "[sim]") {
  const auto config = profile(std::vector<double>(7, 0.7), 0.5);
  Speculation one(config, model()), other(config, model());
  auto seeded = config;
  seeded.seed = 2;
  Speculation third(seeded, model());
  uint32_t differ = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    Speculation::Block a, b, c;
    one.advance(a, SequenceId{uint64_t{3} << 32}, i);
    other.advance(b, SequenceId{uint64_t{3} << 32}, 199 - i);
    other.advance(b, SequenceId{uint64_t{3} << 32}, i);  // begins anew: it is not in b's block
    if (b.first == i) CHECK(a.committed == b.committed);
    third.advance(c, SequenceId{uint64_t{3} << 32}, i);
    differ += a.committed != c.committed ? 1 : 0;
  }
  CHECK(differ > 50);
}

TEST_CASE("A verify step's time is spread over the tokens that it commits", "[sim]") {
  Speculation all(profile(std::vector<double>(7, 1.0)), model());
  const auto fast = token_times(all, 17);
  REQUIRE(fast.size() == 17);
  // The first token is the prompt's; then two blocks of eight.
  const double two_us = static_cast<double>(fast[16] - fast[0]) / 1e3;
  CHECK(two_us == Approx(2 * verify_us(72, 8)).epsilon(0.001));
  CHECK(all.accept_length() == 8);

  Speculation none(profile(std::vector<double>(7, 0.0)), model());
  const auto slow = token_times(none, 5);
  CHECK(static_cast<double>(slow[4] - slow[0]) / 1e3 ==
        Approx(4 * verify_us(66, 8)).epsilon(0.001));
  CHECK(none.accept_length() == 1);
}

TEST_CASE("Trimming verifies less under load and is faster there", "[sim]") {
  const std::vector<double> chat(7, runtime::acceptance_mean(2.7));
  Speculation whole(profile(chat, 0.5), model()), trimmed(profile(chat, 0.5, true), model());
  const double whole_us = run_us(whole, 128, 40), trimmed_us = run_us(trimmed, 128, 40);
  CHECK(trimmed_us < 0.85 * whole_us);
  CHECK(trimmed.verify_width() < whole.verify_width());
  CHECK(trimmed.accept_length() <= whole.accept_length());
  Speculation again(profile(chat, 0.5, true), model());
  CHECK(run_us(again, 128, 40) == trimmed_us);
}

TEST_CASE("Prompts beside drafts cost what they cost alone", "[sim]") {
  runtime::StepShape prompt;
  prompt.add_prefill(0, 512);
  runtime::StepShape both = prompt;
  both.add_decode(1024, 8, 0);  // no part of a verify step at all
  CHECK(model().step_us(both) == Approx(model().step_us(prompt)));
  runtime::StepShape whole = prompt;
  whole.add_decode(1024, 8);
  runtime::StepShape half = prompt;
  half.add_decode(1024, 8, 0.5);
  CHECK(model().step_us(half) ==
        Approx((model().step_us(prompt) + model().step_us(whole)) / 2));
  CHECK(model().step_us(whole) > model().step_us(prompt));
}

TEST_CASE("Drafts are refused where there is no formula for them", "[sim]") {
  runtime::StepOptions options;
  options.drafts = true;
  CHECK_THROWS_WITH(
      runtime::StepModel(runtime::read_device(kConfig + "/devices/gb300.toml"),
                         runtime::ModelGeometry::load(kConfig + "/geometries/kimi-k3.json"),
                         runtime::parse_layout("PP8xTP1"), options),
      Catch::Contains("drafts are modelled without pipeline stages"));
}
