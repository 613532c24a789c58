// The path of a request and of a recurrent state, as the README draws them: a traced request visits
// exactly these functions.
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "actors/system.hpp"
#include "net/server.hpp"
#include "runtime/trace.hpp"
#include "tests/support/http_client.hpp"

namespace {

std::vector<std::string> documented_hops() {
  return {runtime::kRequestHops.begin(), runtime::kRequestHops.end()};
}

std::vector<std::string> hops_of_first_traced_request() {
  for (uint64_t id = 0; id < 1000; ++id) {
    auto hops = runtime::Trace::global().hops({id});
    if (!hops.empty()) return hops;
  }
  return {};
}

struct Stack {
  Stack() {
    runtime::EngineConfig engine;
    engine.model = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";
    engine.memory_gb = 0.25;
    system = actors::System::start(engine);
    net::ServerConfig http;
    http.port = 0;
    server = std::make_unique<net::Server>(http, *system);
    server->run_in_background();
    system->wait_ready();
  }
  ~Stack() {
    server->stop(std::chrono::milliseconds(0));
    runtime::Trace::global().disable();
  }
  std::unique_ptr<actors::System> system;
  std::unique_ptr<net::Server> server;
};

}  // namespace

TEST_CASE("A request visits exactly the documented hops, in order", "[e2e]") {
  const std::string stream = GENERATE("true", "false");
  Stack stack;
  runtime::Trace::global().enable(1 << 16);
  support::HttpClient client(stack.server->port());
  const auto reply = client.request(
      "POST", "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3,"ignore_eos":true,"stream":)" +
          stream + "}");
  REQUIRE(reply.status == 200);
  CHECK(hops_of_first_traced_request() == documented_hops());
}

TEST_CASE("The README names every hop", "[e2e]") {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/README.md");
  std::stringstream text;
  text << in.rdbuf();
  size_t at = 0;
  for (const auto& hop : documented_hops()) {
    CAPTURE(hop);
    at = text.str().find(hop, at);  // in this order
    REQUIRE(at != std::string::npos);
  }
}
