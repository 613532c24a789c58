// The prefix cache as a client sees it: usage, salts, metrics, and memory that is held only while
// something runs.
#include <catch2/catch.hpp>

#include "actors/cache_namespace.hpp"
#include "actors/session_core.hpp"
#include "tests/support/actor_lab.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace actors;

namespace {

std::string long_prompt(size_t length) {
  std::string prompt;
  for (size_t i = 0; i < length; ++i) prompt.push_back(static_cast<char>('A' + i * 7 % 23));
  return prompt;
}

// How many prompt tokens the request did not compute.
uint32_t cached(SystemLab& lab, runtime::GenerateRequest request, const std::string& text = "abc") {
  const Recorder recorder;
  const uint32_t choices = request.n;
  REQUIRE(lab->submit(std::move(request), recorder.sink()).has_value());
  lab.settle();
  CHECK(recorder.protocol_error(choices) == "");
  CHECK(recorder.text() == text);
  REQUIRE(recorder.last<Done>());
  return recorder.last<Done>()->cached_tokens;
}

void check_nothing_held(SystemLab& lab) {
  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.open_requests == 0);
  for (const memory::KindOwners& kind : {metrics.pools.states, metrics.pools.pages}) {
    CHECK(kind.held == 0);
    CHECK(kind.evictable == kind.cached);
  }
}

}  // namespace

TEST_CASE("The second time a prompt is asked, usage tells what was cached", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 10u));
  CAPTURE(seed);
  runtime::EngineConfig config = lab_config();
  config.memory = seed % 2 == 0 ? "unified" : "split:0.3";
  SystemLab lab(config, alphabet_factory(), seed);
  lab.settle();
  const auto request = ask(long_prompt(200), 3);
  CHECK(cached(lab, request) == 0);
  CHECK(cached(lab, request) == 192);
  CHECK(cached(lab, request) == 192);
  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.scheduler.looked_up_tokens_total == 600);
  CHECK(metrics.scheduler.state_hit_tokens_total == 384);
  CHECK(metrics.scheduler.donations_total >= 1);
  CHECK(metrics.cache.restored == 2);
  CHECK(metrics.pools.states.cached >= 1);
  check_nothing_held(lab);
}

TEST_CASE("The choices of one prompt count its cached tokens once", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(), 1);
  lab.settle();
  auto request = ask(long_prompt(130), 3);
  cached(lab, request);
  request.n = 3;
  CHECK(cached(lab, request) == 128);
  check_nothing_held(lab);
}

TEST_CASE("A cache salt keeps a prefix to itself", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(), 2);
  lab.settle();
  auto request = ask(long_prompt(130), 3);
  CHECK(cached(lab, request) == 0);
  request.cache_salt = "mine";
  CHECK(cached(lab, request) == 0);
  CHECK(cached(lab, request) == 128);
  request.cache_salt = "yours";
  CHECK(cached(lab, request) == 0);
  CHECK(name_space_of("mine", 1) != name_space_of("yours", 1));
  CHECK(name_space_of("mine", 1) != name_space_of("mine", 2));
  CHECK(name_space_of("", 1) != name_space_of("", 2));
}

TEST_CASE("A flushed cache is empty, and its memory free", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory(), 4);
  lab.settle();
  const auto request = ask(long_prompt(200), 3);
  cached(lab, request);
  CHECK(cached(lab, request) == 192);
  CHECK(lab->flush_cache());
  lab.settle();
  CHECK(lab->metrics().pools.states.free == lab->metrics().pools.states.total);
  CHECK(lab->metrics().pools.pages.free == lab->metrics().pools.pages.total);
  CHECK(cached(lab, request) == 0);
  CHECK(cached(lab, request) == 192);
  check_nothing_held(lab);
}

TEST_CASE("What memory had no room for comes back from host memory", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 10u));
  CAPTURE(seed);
  runtime::EngineConfig config = lab_config();
  config.memory_gb = 4096.0 / (1024.0 * 1024.0 * 1024.0);  // 64 blocks of 64 B
  config.host_cache_gb = 0.001;
  SystemLab lab(config, alphabet_factory(), seed);
  lab.settle();
  const auto request = ask(long_prompt(200), 3);
  CHECK(cached(lab, request) == 0);
  cached(lab, ask(std::string(300, '5'), 3));  // 38 pages: with the 25 above they do not fit
  CHECK(cached(lab, request) == 192);
  const ServiceMetrics metrics = lab->metrics();
  CHECK(metrics.cache.host_restored == 1);
  CHECK(metrics.cache.host_positions > 0);
  CHECK(metrics.cache.staged_out[0] > 0);
  CHECK(metrics.cache.staged_in[0] == 1);
  CHECK(metrics.cache.staged_in[1] > 0);
  CHECK(metrics.pools.host.bytes > 0);
  CHECK(metrics.pools.host.bytes <= metrics.pools.host.bytes_max);
  check_nothing_held(lab);
  CHECK(lab->flush_cache());
  lab.settle();
  CHECK(lab->metrics().pools.host.bytes == 0);
  CHECK(cached(lab, request) == 0);
}

TEST_CASE("A system that starts again goes on from what the last one wrote", "[actors]") {
  const support::TemporaryDirectory folder;
  runtime::EngineConfig config = lab_config();
  config.host_cache_gb = 0.001;
  config.host_cache_dir = folder.file("cache");  // it is made
  const auto request = ask(long_prompt(200), 3);
  {
    SystemLab lab(config, alphabet_factory(), 1);
    lab.settle();
    CHECK(lab->info().host_cache_note == "");
    CHECK(cached(lab, request) == 0);
    CHECK(lab->drain(std::chrono::milliseconds(0)));
    const auto report = lab->spill(std::chrono::milliseconds(1000));
    REQUIRE(report);
    CHECK(report->trouble == "");
    CHECK(report->whole);
    CHECK(report->states > 0);
    CHECK(report->pages >= 24);
  }
  {
    SystemLab lab(config, alphabet_factory(), 2);
    lab.settle();
    CHECK(lab->info().host_cache_note.find("host cache: ") == 0);
    CHECK(cached(lab, request) == 192);
    CHECK(lab->metrics().cache.host_restored == 1);
  }
  config.page_tokens = 16;
  SystemLab other(config, alphabet_factory(), 3);
  other.settle();
  CHECK(other->info().host_cache_note.find("host_cache_dir: ignoring") == 0);
  CHECK(cached(other, request) == 0);
}

TEST_CASE("Without a prefix cache nothing stays", "[actors]") {
  runtime::EngineConfig config = lab_config();
  config.prefix_cache = false;
  SystemLab lab(config, alphabet_factory(), 3);
  lab.settle();
  const auto request = ask(long_prompt(200), 3);
  CHECK(cached(lab, request) == 0);
  CHECK(cached(lab, request) == 0);
  CHECK(lab->metrics().pools.states.free == lab->metrics().pools.states.total);
  CHECK(lab->metrics().scheduler.snapshots_total == 0);
}

TEST_CASE("An aborted request gives everything back, whenever it is aborted",
          "[actors][property]") {
  for (uint32_t steps = 0; steps < 120; steps += 3) {
    CAPTURE(steps);
    SystemLab lab(lab_config(), alphabet_factory(), steps);
    lab.settle();
    const Recorder recorder;
    const auto id = lab->submit(ask(long_prompt(300), 40), recorder.sink());
    REQUIRE(id.has_value());
    for (uint32_t i = 0; i < steps; ++i) lab.step();
    lab->abort(*id);
    lab.settle();
    CHECK(recorder.ended());
    check_nothing_held(lab);
    CHECK(cached(lab, ask(long_prompt(300), 3)) % 64 == 0);
  }
}
