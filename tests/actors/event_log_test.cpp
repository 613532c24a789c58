// A live server's event log replayed into fresh cores: the same plans and the same answers.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actors/system.hpp"
#include "memory/cache_log.hpp"
#include "runtime/scheduler_log.hpp"
#include "tests/support/actor_lab.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace actors;

namespace {

class LogFiles {
 public:
  std::string base() const { return folder_.file("events"); }
  std::string scheduler() const { return base() + ".scheduler"; }
  std::string cache() const { return base() + ".cache"; }

 private:
  const support::TemporaryDirectory folder_;
};

// Little memory and a few prompts that begin alike: evictions, retractions, moves and hits.
runtime::EngineConfig config_for(const LogFiles& files) {
  runtime::EngineConfig config = lab_config();
  config.event_log = files.base();
  config.memory_gb = 4000.0 / (1024.0 * 1024.0 * 1024.0);
  config.max_queue = 40;
  return config;
}

runtime::GenerateRequest random_request(std::mt19937& rng) {
  const std::string trunk(64 + rng() % 3 * 40, static_cast<char>('a' + rng() % 3));
  runtime::GenerateRequest request = ask(trunk + std::to_string(rng() % 4), 1 + rng() % 40);
  request.n = 1 + rng() % 2;
  if (rng() % 8 == 0) request.deadline_ms = 1 + rng() % 3;
  return request;
}

void check_replay(const LogFiles& files) {
  const auto scheduler = runtime::check_scheduler_log(files.scheduler());
  CHECK(scheduler.difference == "");
  CHECK(scheduler.answers > 100);
  const auto cache = memory::check_cache_log(files.cache());
  CHECK(cache.difference == "");
  CHECK(cache.answers > 20);
}

// Changes the last byte: of the digest of the last answer.
void damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
}

}  // namespace

TEST_CASE("A live event log replayed into the cores gives the same plans and answers", "[actors]") {
  const uint32_t seed = GENERATE(range(0u, 8u));
  CAPTURE(seed);
  const LogFiles files;
  {
    SystemLab lab(config_for(files), alphabet_factory(), seed);
    lab.settle();
    std::vector<runtime::RequestId> open;
    for (int i = 0; i < 60; ++i) {
      const Recorder recorder(lab.rng()() % 4 == 0 ? std::optional<size_t>(lab.rng()() % 9)
                                                   : std::nullopt);
      if (const auto id = lab->submit(random_request(lab.rng()), recorder.sink()))
        open.push_back(*id);
      for (auto steps = lab.rng()() % 60; steps > 0 && lab.step(); --steps) {
      }
      if (!open.empty() && lab.rng()() % 5 == 0) lab->abort(open[lab.rng()() % open.size()]);
      if (lab.rng()() % 5 == 0) lab.advance(std::chrono::milliseconds(1));
    }
    lab.settle();
  }
  check_replay(files);
}

TEST_CASE("So does the log of a server with real threads", "[actors]") {
  const LogFiles files;
  {
    SystemOptions options;
    options.factory = alphabet_factory();
    auto system = System::start(config_for(files), std::move(options));
    system->wait_ready();
    std::vector<std::thread> clients;
    for (unsigned t = 0; t < 3; ++t) {
      clients.emplace_back([&, t] {
        std::mt19937 rng(t);
        for (int i = 0; i < 40; ++i) {
          const auto id = system->submit(random_request(rng), Recorder{}.sink());
          if (id && rng() % 4 == 0) system->abort(*id);
        }
      });
    }
    for (auto& client : clients) client.join();
    CHECK(system->drain(std::chrono::milliseconds(30000)));
  }
  check_replay(files);
}

TEST_CASE("A damaged event log is told from a true one, and a cut one is read to its cut",
          "[actors]") {
  const LogFiles files;
  {
    SystemLab lab(config_for(files), alphabet_factory(), 1);
    lab.settle();
    for (int i = 0; i < 10; ++i) lab->submit(random_request(lab.rng()), Recorder{}.sink());
    lab.settle();
  }
  const auto whole = runtime::check_scheduler_log(files.scheduler());
  REQUIRE(whole.difference == "");
  damage(files.scheduler());
  damage(files.cache());
  CHECK(runtime::check_scheduler_log(files.scheduler()).difference != "");
  CHECK(memory::check_cache_log(files.cache()).difference != "");
  std::filesystem::resize_file(files.scheduler(),
                               std::filesystem::file_size(files.scheduler()) - 3);
  const auto cut = runtime::check_scheduler_log(files.scheduler());
  CHECK(cut.difference == "");
  CHECK(cut.answers == whole.answers - 1);
  CHECK_THROWS_WITH(memory::check_cache_log(files.scheduler()),
                    Catch::Contains(files.scheduler()) && Catch::Contains("no event log"));
  CHECK_THROWS_WITH(memory::check_cache_log("/nonexistent"), Catch::Contains("cannot be read"));
}
