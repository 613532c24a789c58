// --bench and --profile of the real program: figures as one object, and a trace that a viewer can
// read.
#include <unistd.h>

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/command_output.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"

namespace {

namespace json = boost::json;

const std::string kTinyK3 = SLUICE_SOURCE_DIR "/config/models/tiny-k3";

std::string output_of(const std::string& command) {
  const support::CommandOutput ran = support::run_command(command);
  CHECK(ran.status == 0);
  return ran.text;
}

// A file that is gone at the end of the test.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& name)
      : path((std::filesystem::temp_directory_path() /
              ("sluice-" + std::to_string(::getpid()) + "-" + name))
                 .string()) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
  const std::string path;
};

std::set<std::string> names_in(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  std::set<std::string> names;
  const json::value trace = json::parse(text.str());
  for (const json::value& event : trace.at("traceEvents").as_array())
    names.insert(event.at("name").as_string().c_str());
  return names;
}

void check_has(const std::set<std::string>& names, std::initializer_list<const char*> wanted) {
  for (const char* name : wanted) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

}  // namespace

TEST_CASE("The benchmark prints one object of tokens per second, and a profile of the run",
          "[e2e]") {
  const TemporaryFile profile("bench.json");
  const std::string text =
      output_of(std::string(SLUICE_BIN_DIR) + "/sluice-serve --bench --json --threads 2 --model " +
                kTinyK3 + " --bench-points prefill_64,decode_2 --bench-repeat 1 --profile " +
                profile.path + " 2> /dev/null");
  const json::object figures = json::parse(text).as_object();
  CHECK(figures.at("prefill_64").as_double() > 0);
  CHECK(figures.at("decode_2").as_double() > 0);
  CHECK(figures.at("decode_2_fraction").as_double() > 0);
  check_has(names_in(profile.path), {"engine.forward", "state.clear", "state.bind", "matmul", "kda",
                                     "mla", "experts", "residual_mix", "route"});
}

TEST_CASE("A profile of a served request holds actors, steps and kernels", "[e2e]") {
  const TemporaryFile profile("serve.json");
  support::ServerProcess server({"--model", kTinyK3, "--threads", "1", "--profile", profile.path});
  const std::string body = R"({"prompt": "once", "max_tokens": 3, "temperature": 0})";
  CHECK(support::HttpClient(server.port()).request("POST", "/v1/completions", body).status == 200);
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  check_has(names_in(profile.path),
            {"gateway.arrival", "session.arrival", "text_worker.encode", "scheduler.submit",
             "scheduler.step_outcome", "cache_manager.requests", "worker.plan", "engine.forward",
             "state.clear", "matmul", "kda", "mla", "scheduler.plan"});
}
