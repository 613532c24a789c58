// Clients that leave: at any moment, in any order, and everything they held comes back.
#include <catch2/catch.hpp>

#include "actors/sequence_ids.hpp"
#include "actors/system.hpp"
#include "tests/support/actor_lab.hpp"
#include "tests/support/toy_model.hpp"

using namespace actors;
using std::chrono::milliseconds;

namespace {

struct ToyWorld {
  std::shared_ptr<const uint64_t> violations;
  ModelFactory factory() {
    return [this](kernels::Ops&, const runtime::ModelOptions& options) {
      support::ToyOptions toy;
      toy.page_tokens = options.page_tokens;
      auto model = std::make_unique<support::ToyModel>(toy);
      violations = model->violations();
      LoadedModel loaded;
      loaded.model = std::move(model);
      return loaded;
    };
  }
};

// About 60 pages of 4 tokens: a handful of sequences do not fit together, so some are retracted.
runtime::EngineConfig small_pool() {
  runtime::EngineConfig config = lab_config();
  config.memory_gb = 2200.0 / (1024.0 * 1024.0 * 1024.0);
  config.page_tokens = 4;
  config.max_running_requests = 5;
  config.max_queue = 40;  // 20 requests of up to two choices
  return config;
}

runtime::GenerateRequest random_request(std::mt19937& rng) {
  runtime::GenerateRequest request;
  std::vector<runtime::TokenId> prompt(1 + rng() % 90);
  for (auto& id : prompt) id = static_cast<runtime::TokenId>(rng() % 24);
  request.rid = "rid-" + std::to_string(rng() % 5);
  request.prompts = {prompt};
  request.n = 1 + rng() % 2;
  request.max_tokens = rng() % 30;
  request.sampling.temperature = rng() % 2 == 0 ? 0.0f : 1.0f;
  request.sampling.seed = rng();
  if (rng() % 8 == 0) request.deadline_ms = 1 + rng() % 3;
  return request;
}

// The same request with nobody beside it.
std::vector<std::vector<runtime::TokenId>> alone(runtime::GenerateRequest request) {
  ToyWorld world;
  SystemLab lab(small_pool(), world.factory());
  lab.settle();
  request.deadline_ms.reset();
  const uint32_t n = request.n;
  const Recorder recorder;
  REQUIRE(lab->submit(std::move(request), recorder.sink()).has_value());
  lab.settle();
  std::vector<std::vector<runtime::TokenId>> outputs;
  for (uint32_t choice = 0; choice < n; ++choice) outputs.push_back(recorder.ids(choice));
  return outputs;
}

struct Sent {
  runtime::GenerateRequest request;
  Recorder recorder;
  runtime::RequestId id;
};

}  // namespace

TEST_CASE("Whatever clients do, others get their bytes and everything comes back",
          "[actors][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  ToyWorld world;
  SystemLab lab(small_pool(), world.factory(), seed);
  lab.settle();
  std::mt19937& rng = lab.rng();
  std::vector<Sent> sent;
  while (sent.size() < 20) {
    const auto dice = rng() % 100;
    if (dice < 10) {
      const bool leaves = rng() % 4 == 0;
      Sent next{random_request(rng), leaves ? Recorder{rng() % 12} : Recorder{}, {}};
      const auto id = lab->submit(next.request, next.recorder.sink());
      REQUIRE(id.has_value());
      next.id = *id;
      sent.push_back(std::move(next));
    } else if (dice < 12 && !sent.empty()) {
      lab->abort(sent[rng() % sent.size()].id);
    } else if (dice == 12) {
      lab->abort_by_rid("rid-" + std::to_string(rng() % 5));
    } else if (dice == 13) {
      lab.advance(milliseconds(1));
    } else {
      lab.step();
    }
  }
  lab.settle();
  lab.advance(milliseconds(10));
  lab.settle();

  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.open_requests == 0);
  CHECK(metrics.scheduler.running + metrics.scheduler.queued == 0);
  CHECK(metrics.pools.states.held + metrics.pools.pages.held == 0);
  CHECK(*world.violations == 0);
  for (const Sent& one : sent) {
    CHECK(one.recorder.protocol_error(one.request.n) == "");
    if (!one.recorder.last<Done>()) continue;
    const auto expected = alone(one.request);
    for (uint32_t choice = 0; choice < one.request.n; ++choice)
      CHECK(one.recorder.ids(choice) == expected[choice]);
  }
}

TEST_CASE("A client that is gone costs at most the plans already sent", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  lab.settle();
  uint64_t ticks = 0;
  auto& trace = runtime::Trace::global();
  trace.enable(1 << 16, [&ticks] { return ++ticks; });
  std::vector<std::pair<Recorder, std::shared_ptr<uint64_t>>> clients;
  std::vector<runtime::RequestId> ids;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(Recorder{lab.rng()() % 10}, std::make_shared<uint64_t>(0));
    clients.back().first.on_refusal([&ticks, gone = clients.back().second] { *gone = ticks; });
    auto request = ask("0", 100);
    request.sampling.ignore_eos = true;
    const auto id = lab->submit(std::move(request), clients.back().first.sink());
    REQUIRE(id.has_value());
    ids.push_back(*id);
  }
  lab.settle();
  trace.disable();
  for (size_t i = 0; i < clients.size(); ++i) {
    const uint64_t gone = *clients[i].second;
    CHECK(clients[i].first.refused());
    int runs_after = 0;
    for (const auto& hop : trace.records(ids[i])) {
      if (hop.time_ns > gone && std::string(hop.name) == "worker.run") ++runs_after;
    }
    CHECK(runs_after <= 2);
  }
  CHECK(lab.open() == 0);
  CHECK(lab->metrics().pools.pages.held == 0);
}

TEST_CASE("An abort is effective in every phase", "[actors][property]") {
  const auto steps = GENERATE(range(0u, 60u));
  CAPTURE(steps);
  SystemLab lab(lab_config(), alphabet_factory(), steps);
  lab.settle();
  const Recorder recorder;
  auto request = ask("0", 400);
  request.sampling.ignore_eos = true;
  request.rid = "mine";
  const auto id = lab->submit(std::move(request), recorder.sink());
  REQUIRE(id.has_value());
  for (uint32_t i = 0; i < steps; ++i) lab.step();
  CHECK(lab->abort_by_rid("other") == 0);
  CHECK(lab->abort_by_rid("") == 0);
  CHECK((steps % 2 == 0 ? lab->abort_by_rid("mine") : lab->abort_all()) == 1);
  lab->abort(*id);  // idempotent
  lab.settle();
  REQUIRE(recorder.last<Failed>());
  CHECK(recorder.last<Failed>()->error.code == kernels::ErrorCode::kCancelled);
  CHECK(recorder.protocol_error(1) == "");
  CHECK(recorder.ids().size() < 60);
  CHECK(lab.open() == 0);
  CHECK(lab->metrics().pools.pages.held == 0);
  CHECK(lab->metrics().pools.states.held == 0);
}
