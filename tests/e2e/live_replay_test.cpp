// A trace against the real server program: what its cache finds is what the real cache finds when
// it is played in this process.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "net/replay/hit_check.hpp"
#include "net/replay/live_run.hpp"
#include "runtime/output_files.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

namespace json = boost::json;
using support::ServerProcess;

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

// Conversations that grow, some of which part from an earlier turn; blocks of 64.
net::Trace conversations(uint32_t seed) {
  std::mt19937 random(seed);
  net::Trace trace;
  trace.block_tokens = 64;
  trace.has_prefixes = true;
  trace.clock = net::TraceClock::kOwn;
  for (uint32_t s = 0; s < 4; ++s) {
    trace.sessions.push_back({"s", 0, 4});
    const auto first = static_cast<uint32_t>(trace.requests.size());
    for (uint32_t t = 0; t < 4; ++t) {
      net::TraceRequest request;
      request.session = s;
      request.start_s = t;
      if (t > 0) {
        request.after = first + t - 1;
        request.shared_with = first + static_cast<uint32_t>(random() % t);
        request.shared_blocks =
            1 + static_cast<uint32_t>(random() % trace.requests[*request.shared_with].blocks);
      }
      request.blocks = request.shared_blocks + 1 + static_cast<uint32_t>(random() % 4);
      request.input_tokens = request.blocks * 64 + static_cast<uint32_t>(random() % 64);
      // Past the next boundary, as where hits are counted.
      request.output_tokens = 65 + static_cast<uint32_t>(random() % 6);
      trace.requests.push_back(request);
    }
  }
  return trace;
}

net::Scenario scenario_for(const ServerProcess& server, const std::string& more) {
  net::Scenario scenario = net::parse_scenario("seed = 5\n[trace]\nfiles = \"t\"\n" + more, "s");
  scenario.live.url = "http://127.0.0.1:" + std::to_string(server.port());
  return scenario;
}

}  // namespace

TEST_CASE("A live server finds what the cache finds of the same trace in process", "[e2e]") {
  // A step takes a whole prompt, as where hits are counted.
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25", "--chunk-tokens", "4096"});
  const net::Trace trace = conversations(11);
  uint64_t kv = 0, usable = 0, prompts = 0, answers = 0;
  for (const net::HitRow& row : net::check_hits(trace)) kv += row.kv, usable += row.usable;
  for (const auto& request : trace.requests)
    prompts += request.input_tokens, answers += request.output_tokens;
  REQUIRE(usable > 0);

  const auto result =
      net::run_live(scenario_for(server, "[pace]\nmode = \"serial\"\n"), trace, nullptr);
  CAPTURE(json::serialize(result));
  CHECK(result.at("finished") == trace.requests.size());
  CHECK(result.at("prompt_tokens") == prompts);
  CHECK(result.at("output_tokens") == answers);
  CHECK(result.at("state_hit_tokens") == usable * 64);
  CHECK(result.at("kv_hit_tokens") == kv * 64);
  CHECK(result.at("evicted_states") == 0);
  CHECK(result.at("retracted") == 0);
  CHECK(result.at("peak_states").to_number<int>() > 0);
  CHECK(result.at("pages_max").to_number<int>() > 0);
  CHECK(result.at("steps").to_number<int>() > 0);
  CHECK(result.at("server").at("model") == "tiny-k3");
}

TEST_CASE("Clients of a live server that leave early leave nothing behind", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  net::Trace trace = conversations(12);
  for (auto& request : trace.requests) request.output_tokens = 200;
  const auto result = net::run_live(
      scenario_for(server, "[pace]\nthink = false\n[faults]\nleave-share = 0.8\n"), trace, nullptr);
  CAPTURE(json::serialize(result));
  const auto left = result.at("left").to_number<uint64_t>();
  CHECK(left > 0);
  CHECK(left + result.at("finished").to_number<uint64_t>() == trace.requests.size());
  CHECK(result.at("errors") == json::object());
  const auto open = [&] {
    const std::string text = support::HttpClient(server.port()).request("GET", "/metrics").body;
    const size_t at = text.rfind("\nsluice:num_open_reqs{");
    return std::strtod(text.c_str() + text.find("} ", at) + 2, nullptr);
  };
  while (open() > 0) std::this_thread::yield();  // the test's own time-out is the bound
}

TEST_CASE("sluice-replay live plays a file's trace and writes what it found", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  support::TemporaryDirectory directory;
  const std::string trace = directory.file("trace.jsonl"), scenario = directory.file("s.toml"),
                    out = directory.file("out.json"), text = directory.file("out.txt");
  runtime::write_file(
      trace, R"({"timestamp":0,"input_length":1100,"output_length":64,"hash_ids":[1,2,3]})"
             "\n"
             R"({"timestamp":20,"input_length":1500,"output_length":16,"hash_ids":[1,2,4]})"
             "\n");
  runtime::write_file(scenario, "name = \"two\"\n[trace]\nfiles = \"" + trace +
                                    "\"\n[pace]\nmode = \"open\"\n[live]\nurl = \"nowhere:1\"\n");
  const std::string command = std::string(SLUICE_BIN_DIR) + "/sluice-replay live " + scenario +
                              " --url http://127.0.0.1:" + std::to_string(server.port()) +
                              " --scale-block 64 --json " + out + " > " + text + " 2>&1";
  REQUIRE(std::system(command.c_str()) == 0);
  std::stringstream written;
  written << std::ifstream(out).rdbuf();
  const json::value result = json::parse(written.str());
  CHECK(result.at("scenario") == "two");
  CHECK(result.at("finished") == 2);
  CHECK(result.at("prompt_tokens") == 1100 / 8 + 1500 / 8);  // 512 tokens became 64
  CHECK(result.at("output_tokens") == 8 + 2);
  std::stringstream shown;
  shown << std::ifstream(text).rdbuf();
  CHECK(shown.str().find("output_tokens_per_s") != std::string::npos);
  CHECK(shown.str().find("\r") == std::string::npos);  // no terminal, no progress
}
