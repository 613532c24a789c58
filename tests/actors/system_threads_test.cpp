// The same System with real threads, and what a step costs.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <thread>

#include "actors/system.hpp"
#include "tests/support/actor_lab.hpp"

using namespace actors;
using std::chrono::milliseconds;

namespace {

// Counts ends; a test waits for them instead of sleeping.
class Finish {
 public:
  Sink sink(size_t take = ~size_t{0}) {
    return [this, take, seen = size_t{0}](const SinkEvent& event) mutable {
      if (std::holds_alternative<Done>(event) || std::holds_alternative<Failed>(event)) count();
      return ++seen <= take;
    };
  }
  bool wait(size_t ends) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ends_ >= ends; });
  }
  size_t ends() const { return ends_; }

 private:
  void count() {
    const std::lock_guard lock(mutex_);
    ++ends_;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ends_ = 0;
};

std::unique_ptr<System> start(const runtime::EngineConfig& config) {
  SystemOptions options;
  options.factory = alphabet_factory();
  auto system = System::start(config, std::move(options));
  system->wait_ready();
  return system;
}

runtime::EngineConfig wide_config() {
  runtime::EngineConfig config = lab_config();
  config.max_running_requests = 64;
  config.max_queue = 64;
  return config;
}

bool back_to_baseline(System& system) {
  const ServiceMetrics metrics = system.metrics();
  return metrics.open_requests == 0 && metrics.pools.pages.held == 0 &&
         metrics.pools.states.held == 0;
}

}  // namespace

TEST_CASE("Many threads submit, abort and leave; everything comes back", "[actors]") {
  Finish finish;
  auto system = start(wide_config());
  std::vector<std::thread> clients;
  for (unsigned t = 0; t < 4; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 rng(t);
      for (int i = 0; i < 50; ++i) {
        const bool leaves = rng() % 3 == 0;
        const auto id =
            system->submit(ask("a", 1 + rng() % 60), finish.sink(leaves ? rng() % 20 : ~size_t{0}));
        if (id && rng() % 4 == 0) system->abort(*id);
      }
    });
  }
  for (auto& client : clients) client.join();
  CHECK(system->drain(milliseconds(30000)));
  CHECK_FALSE(system->ready());
  // The scheduler's releases reach the cache manager a moment after the last session ended.
  for (int i = 0; i < 10000 && !back_to_baseline(*system); ++i) std::this_thread::yield();
  CHECK(back_to_baseline(*system));
}

TEST_CASE("Destroying a busy system ends its requests and does not hang", "[actors]") {
  Finish finish;
  {
    auto system = start(wide_config());
    for (int i = 0; i < 32; ++i) {
      auto request = ask("0");
      request.sampling.ignore_eos = true;
      REQUIRE(system->submit(std::move(request), finish.sink()).has_value());
    }
  }
  CHECK(finish.ends() == 32);
}

TEST_CASE("Destroying a system that still loads does not hang", "[actors]") {
  SystemOptions options;
  options.factory = alphabet_factory();
  const auto system = System::start(lab_config(), std::move(options));
}

TEST_CASE("A drain aborts at its deadline what still runs", "[actors]") {
  Finish finish;
  auto system = start(wide_config());
  auto request = ask("0");
  request.prompts = {std::vector<runtime::TokenId>(100, 'a')};
  request.sampling.ignore_eos = true;
  for (int i = 0; i < 64; ++i) REQUIRE(system->submit(request, finish.sink()).has_value());
  system->drain(milliseconds(1));
  CHECK(finish.ends() == 64);
  CHECK(system->metrics().open_requests == 0);
}

TEST_CASE("64 streams are served in steps whose gaps are all counted", "[actors][slow]") {
  runtime::EngineConfig config;
  config.device = "null";
  config.threads = 1;
  config.memory_gb = 0.25;
  SystemOptions options;
  options.pool_threads = GENERATE(1u, 2u);
  CAPTURE(options.pool_threads);
  Finish finish;
  auto system = System::start(config, options);
  system->wait_ready();
  for (int i = 0; i < 64; ++i) {
    runtime::GenerateRequest request;
    request.prompts = {std::vector<runtime::TokenId>{1, 2, 3}};
    request.max_tokens = 2000;
    request.sampling.temperature = 0;
    REQUIRE(system->submit(std::move(request), finish.sink()).has_value());
  }
  REQUIRE(finish.wait(64));
  const ServiceMetrics metrics = system->metrics();
  const auto& gaps = metrics.worker_gap_seconds;
  uint64_t total = 0;
  for (const uint64_t count : gaps.counts) total += count;
  // What a step costs depends on who else uses the machine: bench-serving measures it.
  CHECK(metrics.scheduler.steps_total >= 2000);
  CHECK(total == metrics.scheduler.steps_total - 1);
  CHECK(metrics.worker_busy_ns > 0);
}
