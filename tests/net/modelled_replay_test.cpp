#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "net/replay/hit_check.hpp"
#include "net/replay/scenario_run.hpp"
#include "tests/net/agent_trace.hpp"

namespace {

namespace json = boost::json;

const char* const kScenario = R"(
name = "small"
seed = 7
[trace]
files = "unused"
[pace]
mode = "closed"
concurrency = 6
[faults]
leave-share = 0.1
deadline-s = 60
[slo]
ttft-s = 2
itl-s = 0.05
[server]
device = "gb300"
model = "kimi-k3"
layout = "TP8"
kv-tokens = 20000
max-running = 4
chunk-tokens = 1024
)";

std::string run(const std::string& toml, const net::Trace& trace) {
  return json::serialize(net::run_scenario(net::parse_scenario(toml, "s.toml"), trace,
                                           SLUICE_SOURCE_DIR "/config"));
}

}  // namespace

TEST_CASE("Equal scenarios give equal bytes, other seeds others", "[replay]") {
  const auto trace = agent_trace(1, 20, 6);
  const std::string once = run(kScenario, trace);
  CHECK(once == run(kScenario, trace));
  std::string other = kScenario;
  other.replace(other.find("seed = 7"), 8, "seed = 8");
  CHECK(once != run(other, trace));
}

TEST_CASE("Every request of a scenario is accounted for", "[replay]") {
  const auto trace = agent_trace(2, 20, 6);
  const auto result = net::run_scenario(net::parse_scenario(kScenario, "s.toml"), trace,
                                        SLUICE_SOURCE_DIR "/config");
  const auto count = [&](const char* key) { return result.at(key).to_number<uint64_t>(); };
  CHECK(count("requests") == 120);
  CHECK(count("finished") + count("left") + count("timed_out") + count("failed") == 120);
  CHECK(count("left") > 0);
  CHECK(count("failed") == 0);
  CHECK(count("evicted_pages") > 0);  // 20,000 tokens do not hold six sessions
  CHECK(count("state_hit_tokens") <= count("kv_hit_tokens"));
  CHECK(count("kv_hit_tokens") < count("prompt_tokens"));
  std::ostringstream table;
  net::print_result(result, table);
  CHECK(table.str().find("  requests                  120\n") != std::string::npos);
}

TEST_CASE("A server that speculates decodes faster, by a profile and the seed", "[replay]") {
  const auto trace = agent_trace(2, 10, 4);
  const auto play = [&](const std::string& speculation) {
    return net::run_scenario(net::parse_scenario(kScenario + speculation, "s.toml"), trace,
                             SLUICE_SOURCE_DIR "/config");
  };
  const std::string table = "[server.speculation]\n";
  const auto plain = play("");
  const auto drafts = play(table + "accept-length = 4\nconfidence-spread = 0.5\n");
  CHECK(plain.find("accept_length") == plain.end());
  CHECK(drafts.at("accept_length").to_number<double>() == Approx(4).epsilon(0.05));
  CHECK(drafts.at("verify_width").to_number<double>() == 8);
  CHECK(json::serialize(drafts) ==
        json::serialize(play(table + "accept-length = 4\nconfidence-spread = 0.5\n")));
  const auto between = [](const json::object& result) {
    return result.at("itl_s").at("p50").to_number<double>();
  };
  CHECK(between(drafts) < 0.5 * between(plain));
  CHECK(play(table + "draft-tokens = 2\nacceptance = [1, 1]\n").at("accept_length") == 3.0);
  const auto refused = [&](const std::string& keys, const std::string& message) {
    CHECK_THROWS_WITH(play(table + keys), Catch::Contains("server.speculation." + message));
  };
  refused("trim = true\n", "acceptance is needed");
  refused("accept-length = 2\nacceptance = [0.5]\n", "acceptance is needed");
  refused("acceptance = [0.5]\n", "acceptance has 1 numbers; expected draft-tokens, 7");
  refused("acceptance = [2]\n", "acceptance holds something else than numbers from 0 to 1");
  refused("draft-tokens = 2\naccept-length = 3\n", "accept-length must be above 1 and below");
}

TEST_CASE("Nobody waits when there is room, and more memory never hits less", "[replay]") {
  const auto trace = agent_trace(3, 30, 5);
  double last = -1;
  for (const char* tokens : {"5000", "30000", "400000"}) {
    std::string scenario = kScenario;
    scenario.replace(scenario.find("leave-share = 0.1"), 17, "leave-share = 0.0");
    scenario.replace(scenario.find("kv-tokens = 20000"), 17, std::string("kv-tokens = ") + tokens);
    const auto result = net::run_scenario(net::parse_scenario(scenario, "s.toml"), trace,
                                          SLUICE_SOURCE_DIR "/config");
    const double rate = result.at("kv_hit_rate").to_number<double>();
    CHECK(rate >= last);
    last = rate;
  }
}

TEST_CASE("With room for all, the cache finds exactly the blocks that prompts share", "[replay]") {
  for (uint64_t seed = 10; seed < 16; ++seed) {
    const auto trace = agent_trace(seed, 8, 10);
    const auto rows = net::check_hits(trace);
    REQUIRE(rows.size() == trace.requests.size());
    for (const net::HitRow& row : rows) {
      CHECK(row.kv == row.ideal);
      CHECK(row.usable <= row.kv);
    }
  }
}

TEST_CASE("A published experiment is not played: the error names what does it", "[replay]") {
  CHECK_THROWS_WITH(net::parse_scenario("[experiment]\nkind = \"step\"\n", "one.toml"),
                    Catch::Contains("one.toml") && Catch::Contains("`figures` computes"));
}

TEST_CASE("A trace of lengths alone has no hits to check", "[replay]") {
  net::Trace trace;
  CHECK_THROWS_WITH(net::check_hits(trace),
                    "trace: it has lengths alone; hits need one with prefixes");
  trace.has_prefixes = true;
  trace.block_tokens = 48;
  CHECK_THROWS_WITH(net::check_hits(trace),
                    "trace: blocks of 48 tokens cannot be pages; a page is a power of two");
}

TEST_CASE("A scenario that cannot be is refused by file and key", "[replay]") {
  const auto complaint = [](const std::string& toml) {
    try {
      net::parse_scenario(toml, "s.toml");
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string trace = "[trace]\nfiles = 'x'\n";
  CHECK(complaint("") == "s.toml: trace is missing; expected a table with `files`");
  CHECK(complaint("[trace]\n") == "s.toml: trace.files is missing; expected the paths of one trace");
  CHECK(complaint("nam = 1\n" + trace) ==
        "s.toml: nam is unknown; known are faults, figure, grid, live, name, pace, seed, server, slo, trace");
  CHECK(complaint(trace + "[pace]\nmode = 'ajar'") ==
        "s.toml: pace.mode is \"ajar\"; expected one of \"open\", \"closed\", \"serial\"");
  CHECK(complaint(trace + "[pace]\nmode = 'open'\nconcurrency = 3") ==
        "s.toml: pace.mode is not \"closed\"; a cap on open sessions (concurrency, phase) needs it");
  CHECK(complaint(trace + "[pace]\nphase = [{from-s = 5, concurrency = 2}]") ==
        "s.toml: pace.phase[0].from-s is not 0; the first phase begins at 0 s");
  CHECK(complaint(trace + "[server]\nkv = 'int4'") ==
        "s.toml: server.kv is \"int4\"; expected one of \"bf16\", \"fp8\", \"f32\"");
  CHECK(complaint(trace + "[faults]\nleave-share = 2") ==
        "s.toml: faults.leave-share is 2; expected a number from 0 to 1");
}
