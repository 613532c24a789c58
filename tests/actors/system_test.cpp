// Requests through all actors, on one thread, in seeded orders.
#include "actors/system.hpp"

#include <catch2/catch.hpp>

#include "tests/support/actor_lab.hpp"

using namespace actors;
using kernels::ErrorCode;
using std::chrono::milliseconds;

namespace {

// What must hold when nothing is open: every block, credit and sequence came back.
void check_baseline(SystemLab& lab) {
  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.open_requests == 0);
  CHECK(metrics.scheduler.running == 0);
  CHECK(metrics.scheduler.queued == 0);
  CHECK(metrics.pools.states.free == metrics.pools.states.total);
  CHECK(metrics.pools.pages.free == metrics.pools.pages.total);
  CHECK(lab->flush_cache());
}

}  // namespace

TEST_CASE("A prompt becomes an answer, whatever the order of the actors", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  CHECK(lab->submit(ask("early"), Recorder{}.sink()).error().code == ErrorCode::kUnavailable);
  lab.settle();
  REQUIRE(lab->ready());
  CHECK(lab->info().vocab_size == 512);
  CHECK(lab->info().context_length == 512);

  const Recorder recorder;
  auto request = ask("uvw");
  request.n = 2;
  REQUIRE(lab->submit(std::move(request), recorder.sink()).has_value());
  lab.settle();
  CHECK(recorder.protocol_error(2) == "");
  CHECK(recorder.text(0) == "xyz");
  CHECK(recorder.text(1) == "xyz");
  const auto done = recorder.last<ChoiceDone>();
  REQUIRE(done);
  CHECK(done->reason == runtime::FinishReason::kStop);
  CHECK(done->stop_id == AlphabetModel::kEnd);
  CHECK(recorder.last<Done>()->prompt_tokens == 3);
  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.scheduler.requests_total == 1);
  CHECK(metrics.e2e_seconds.sum > 0);
  check_baseline(lab);
}

TEST_CASE("A stop string ends a running sequence and gives its blocks back", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(), 3);
  lab.settle();
  const Recorder recorder;
  auto request = ask("a");
  request.stop = {"fgh"};
  REQUIRE(lab->submit(std::move(request), recorder.sink()).has_value());
  lab.settle();
  CHECK(recorder.text() == "bcde");
  CHECK(recorder.last<ChoiceDone>()->stop_text == "fgh");
  CHECK(recorder.last<Done>()->output_tokens == 7);
  check_baseline(lab);
}

TEST_CASE("A prompt that cannot be encoded fails alone and frees its credit", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(false));
  lab.settle();
  const Recorder text, ids;
  REQUIRE(lab->submit(ask("text"), text.sink()).has_value());
  auto request = ask("");
  request.prompts = {std::vector<runtime::TokenId>{'x', 'y'}};
  REQUIRE(lab->submit(std::move(request), ids.sink()).has_value());
  lab.settle();
  CHECK(text.last<Failed>()->error.code == ErrorCode::kInvalid);
  CHECK(text.last<Failed>()->error.message ==
        "prompt: this model has no tokenizer; send the prompt as token ids");
  CHECK(ids.ids() == std::vector<runtime::TokenId>{'z'});
  check_baseline(lab);
}

TEST_CASE("A full server refuses with kFull and takes requests again later", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  std::vector<Recorder> recorders(9);
  for (size_t i = 0; i < 8; ++i) REQUIRE(lab->submit(ask("m"), recorders[i].sink()).has_value());
  CHECK(lab->submit(ask("m"), recorders[8].sink()).error().code == ErrorCode::kFull);
  CHECK_FALSE(lab->flush_cache());
  lab.settle();
  CHECK(lab->metrics().rejected_total == 1);
  CHECK(lab->submit(ask("m"), recorders[8].sink()).has_value());
  lab.settle();
  for (const auto& recorder : recorders) CHECK(recorder.text() == "nopqrstuvwxyz");
  check_baseline(lab);
}

TEST_CASE("A deadline ends a request that waits and one that runs", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(), 1);
  lab.settle();
  const Recorder recorder;
  auto request = ask("0");
  request.sampling.ignore_eos = true;
  request.deadline_ms = 50;
  REQUIRE(lab->submit(std::move(request), recorder.sink()).has_value());
  for (int i = 0; i < 60; ++i) lab.step();
  CHECK_FALSE(recorder.ended());
  lab.advance(milliseconds(60));
  lab.settle();
  REQUIRE(recorder.last<Failed>());
  CHECK(recorder.last<Failed>()->error.code == ErrorCode::kTimeout);
  check_baseline(lab);
}

TEST_CASE("Logits that are not finite end their request alone", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  const Recorder bad, good;
  REQUIRE(lab->submit(ask("a!"), bad.sink()).has_value());
  REQUIRE(lab->submit(ask("w"), good.sink()).has_value());
  lab.settle();
  CHECK(bad.last<Failed>()->error.code == ErrorCode::kInternal);
  CHECK(good.text() == "xyz");
  CHECK(lab->ready());
  check_baseline(lab);
}

TEST_CASE("A worker that breaks fails every request and the service", "[actors]") {
  const auto seed = GENERATE(range(0u, 10u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  lab.settle();
  std::vector<Recorder> recorders(4);
  for (size_t i = 0; i < 4; ++i)
    REQUIRE(lab->submit(ask(i == 2 ? "#" : "0"), recorders[i].sink()).has_value());
  lab.settle();
  size_t failed = 0;
  for (const auto& recorder : recorders) {
    CHECK(recorder.ended());
    const auto failure = recorder.last<Failed>();
    if (failure) CHECK(failure->error.code == ErrorCode::kInternal);
    failed += failure ? 1 : 0;
  }
  CHECK(failed > 0);
  CHECK(lab.open() == 0);
  CHECK_FALSE(lab->ready());
  CHECK(lab->phase().kind == ServicePhase::Kind::kFailed);
  CHECK(lab.losses() == std::vector<std::string>{lab->phase().reason});
  const auto refused = lab->submit(ask("late"), Recorder{}.sink());
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  CHECK(refused.error().message.find("the worker was lost: a step failed: std::bad_alloc") !=
        std::string::npos);
}

TEST_CASE("A model that does not load is reported by wait_ready", "[actors]") {
  SystemLab lab(lab_config(), [](kernels::Ops&, const runtime::ModelOptions&) -> LoadedModel {
    throw std::runtime_error("model.safetensors: truncated");
  });
  CHECK(lab->phase().kind == ServicePhase::Kind::kStarting);
  CHECK_THROWS_WITH(lab->wait_ready(), "model.safetensors: truncated");
  CHECK(lab->phase().reason == "model.safetensors: truncated");
  CHECK(lab.losses().empty());
  CHECK_FALSE(lab->ready());
}

TEST_CASE("Draining finishes what runs or aborts it, and refuses the rest", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  const Recorder recorder;
  REQUIRE(lab->submit(ask("a"), recorder.sink()).has_value());
  CHECK(lab->drain(milliseconds(100)));
  CHECK(lab->phase().kind == ServicePhase::Kind::kDraining);
  CHECK(recorder.text() == "bcdefghijklmnopqrstuvwxyz");
  CHECK(lab->submit(ask("late"), Recorder{}.sink()).error().code == ErrorCode::kUnavailable);
  check_baseline(lab);
}

TEST_CASE("The destructor gives every sink its end", "[actors]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::vector<Recorder> recorders(6);
  {
    SystemLab lab(lab_config(), alphabet_factory(), seed);
    lab.settle();
    for (const auto& recorder : recorders)
      REQUIRE(lab->submit(ask("a"), recorder.sink()).has_value());
    const size_t steps = lab.rng()() % 100;
    for (size_t i = 0; i < steps; ++i) lab.step();
  }
  for (const auto& recorder : recorders) CHECK(recorder.protocol_error(1) == "");
}

TEST_CASE("A traced request visits the documented hops in order", "[actors]") {
  const auto seed = GENERATE(range(0u, 10u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  lab.settle();
  uint64_t ticks = 0;
  runtime::Trace::global().enable(4096, [&ticks] { return ++ticks; });
  const Recorder recorder;
  const auto id = lab->submit(ask("w"), recorder.sink());
  REQUIRE(id.has_value());
  lab.settle();
  runtime::Trace::global().disable();
  const std::vector<std::string> documented(runtime::kRequestHops.begin() + 2,
                                            runtime::kRequestHops.end() - 1);
  CHECK(runtime::Trace::global().hops(*id) == documented);  // without those of net/
}

TEST_CASE("The trace ring keeps the newest hops, and none while it is off", "[actors]") {
  auto& trace = runtime::Trace::global();
  trace.enable(2);
  trace.record_at({1}, "early", 5);
  trace.record_at({1}, "later", 7);
  trace.record_at({1}, "before", 6);
  CHECK(trace.hops({1}) == std::vector<std::string>{"before", "later"});
  trace.disable();
  runtime::trace_hop({1}, "unseen");
  CHECK(trace.records({1}).size() == 2);
}
