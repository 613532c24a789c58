// A replay that skips steps gives the bytes of one that makes each, whatever the scenario.
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "net/replay/scenario_run.hpp"
#include "tests/net/agent_trace.hpp"

namespace {

std::string random_scenario(std::mt19937_64& random) {
  const auto one_of = [&](const std::vector<std::string>& choices) {
    return choices[random() % choices.size()];
  };
  std::string toml = "seed = " + std::to_string(random() % 1000) + "\n[trace]\nfiles = 'unused'\n";
  toml += "[pace]\n";
  toml += one_of({"mode = 'open'\nspread-s = 60\n", "concurrency = 6\n", "spread-s = 200\n",
                  "concurrency = 3\nthink = false\nuntil-s = 90\n", "mode = 'serial'\n",
                  "phase = [{from-s = 0, concurrency = 2}, {from-s = 20, concurrency = 7}]\n"});
  toml += "[faults]\n" + one_of({"", "leave-share = 0.2\n", "deadline-s = 3\n",
                                 "leave-share = 0.1\ndeadline-s = 5\n"});
  toml += "[slo]\nttft-s = 2\nitl-s = 0.02\n[server]\ndevice = 'gb300'\nmodel = 'kimi-k3'\n";
  toml += "layout = '" + one_of({"TP8", "TP8-DCP8", "PP8xTP1", "TEP8"}) + "'\n";
  toml += one_of({"", "prefix-cache = false\n", "host-gb = 1\n", "eviction = 'lru'\n"});
  toml += one_of({"kv-tokens = 20000\n", "kv-tokens = 200000\n"});
  toml += one_of({"max-running = 4\n", "max-running = 32\n"});
  toml += one_of({"chunk-tokens = 256\n", "chunk-tokens = 4096\n"});
  return toml;
}

struct Played {
  std::string json;
  std::vector<net::Picture> pictures;
};

Played play(const net::Scenario& scenario, const net::Trace& trace, bool skip) {
  Played out;
  out.json = boost::json::serialize(net::run_scenario(
      scenario, trace, SLUICE_SOURCE_DIR "/config", &out.pictures, skip));
  return out;
}

}  // namespace

TEST_CASE("Random scenarios give the same bytes with and without skipping steps", "[replay]") {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 12; ++round) {
    const std::string toml = random_scenario(random);
    INFO("seed " << seed << " round " << round << "\n" << toml);
    const auto trace = agent_trace(random(), 10, 5);
    const net::Scenario scenario = net::parse_scenario(toml, "s.toml");
    const Played with = play(scenario, trace, true), without = play(scenario, trace, false);
    REQUIRE(with.json == without.json);
    REQUIRE(with.pictures.size() == without.pictures.size());
    for (size_t i = 0; i < with.pictures.size(); ++i)
      CHECK(with.pictures[i].svg == without.pictures[i].svg);
  }
}
