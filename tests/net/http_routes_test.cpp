// Paths, methods, the key, and the endpoints that need no generation.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <regex>

#include "net/auth.hpp"
#include "net/prometheus.hpp"
#include "net/server_state.hpp"
#include "tests/net/http_fixture.hpp"

using support::completion;
using support::get;
using support::post;
using support::Running;
using support::WireClient;
using support::WireReply;

namespace json = boost::json;

TEST_CASE("unknown paths are 404 and wrong methods 405 with the right ones", "[net]") {
  Running running;
  WireClient client(running.port());
  for (const char* path :
       {"/", "/v1", "/v1/chat", "/v1/models/", "/v1/chat/completions/", "/health/x", "/HEALTH"}) {
    CAPTURE(path);
    const WireReply reply = client.ask(get(path));
    CHECK(reply.status == 404);
    CHECK_THAT(reply.body, Catch::Contains(std::string("unknown path ") + path));
  }
  struct Wrong {
    std::string request, allow;
  };
  const std::vector<Wrong> cases = {
      {get("/v1/chat/completions"), "POST, OPTIONS"},
      {get("/v1/completions?x=1"), "POST, OPTIONS"},
      {post("/health", ""), "GET, HEAD, OPTIONS"},
      {"DELETE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "GET, HEAD, OPTIONS"},
      {"BREW /flush_cache HTTP/1.1\r\nHost: x\r\n\r\n", "GET, HEAD, POST, OPTIONS"},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.request);
    const WireReply reply = client.ask(wrong.request);
    CHECK(reply.status == 405);
    CHECK(reply.header("Allow") == wrong.allow);
    CHECK_THAT(reply.body, Catch::StartsWith(R"({"error":{"message":)"));
  }
}

TEST_CASE("HEAD has the header of GET and no body; OPTIONS names the methods", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  const WireReply head = client.read_reply(true);
  const WireReply whole = client.ask(get("/v1/models"));
  CHECK(head.status == 200);
  CHECK(head.header("Content-Length") == std::to_string(whole.body.size()));

  const WireReply options = client.ask("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(options.status == 204);
  CHECK(options.header("Allow") == "POST, OPTIONS");
  CHECK(client.ask("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").status == 204);
  CHECK(client.ask("GET http://test/health HTTP/1.1\r\nHost: x\r\n\r\n").status ==
        200);  // absolute form
}

TEST_CASE("with a key set, everything but /health asks for it", "[net]") {
  auto config = support::quick_config();
  config.api_key = "secret";
  Running running(config);
  running.service.answer_at_once(support::whole_answer({"hello"}));
  WireClient client(running.port());
  CHECK(client.ask(get("/health")).status == 200);
  for (const char* header :
       {"", "Authorization: secret\r\n", "Authorization: Bearer\r\n",
        "Authorization: Bearer secre\r\n", "Authorization: Bearer secrets\r\n",
        "Authorization: Bearer Secret\r\n", "Authorization: Basic secret\r\n"}) {
    CAPTURE(header);
    for (const char* path : {"/v1/models", "/metrics", "/nowhere"}) {
      const WireReply reply = client.ask(get(path, header));
      CHECK(reply.status == 401);
      CHECK(reply.header("WWW-Authenticate") == "Bearer");
      CHECK_THAT(reply.body, Catch::Contains("API key"));
    }
  }
  CHECK(client.ask(get("/v1/models", "Authorization: Bearer secret\r\n")).status == 200);
  CHECK(client.ask(completion(false, "authorization: bearer secret\r\n")).status == 200);
}

TEST_CASE("is_authorized compares whole keys", "[net]") {
  CHECK(net::is_authorized("", ""));
  CHECK(net::is_authorized("Bearer abc", "abc"));
  CHECK(net::is_authorized("bearer  abc", "abc"));
  CHECK_FALSE(net::is_authorized("Bearer ", "abc"));
  CHECK_FALSE(net::is_authorized("Bearer abcabc", "abc"));
  CHECK_FALSE(net::is_authorized("Bearer ab", "abc"));
  CHECK_FALSE(net::is_authorized("Bearer", "abc"));
  CHECK(net::equal_in_constant_time("", ""));
  CHECK_FALSE(net::equal_in_constant_time("a", ""));
}

TEST_CASE("until the model is loaded, what needs it is 503 and the state is told", "[net]") {
  Running running;
  running.service.is_ready = false;
  running.service.facts.vocab_size = 0;  // as it is while weights are read
  for (const std::string& request :
       {get("/health"), get("/health_generate"), get("/v1/models"), completion(), completion(true),
        post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})"),
        post("/tokenize", R"({"prompt":"hi"})"), post("/detokenize", R"({"tokens":[1]})")}) {
    CAPTURE(request);
    const WireReply early = WireClient(running.port()).ask(request);
    CHECK(early.status == 503);
    CHECK(early.header("Retry-After") == "1");
    CHECK(early.header("retry-after-ms") == "1000");
    CHECK_THAT(early.body, Catch::Contains("starting: "));
  }
  WireClient client(running.port());
  CHECK(json::parse(client.ask(get("/get_server_info")).body).at("status") == "starting");
  CHECK(client.ask(get("/metrics")).status == 200);
  running.service.is_ready = true;
  CHECK(client.ask(get("/health")).status == 200);
  CHECK(json::parse(client.ask(get("/get_server_info")).body).at("status") == "ready");
}

TEST_CASE("the state of the server names the reason of a failure", "[net]") {
  support::FakeService service;
  net::ServerContext context(support::quick_config(), service);
  CHECK(net::state_of(context).ready());
  context.draining = true;
  CHECK(net::state_of(context).word == "draining");
  service.failure = "worker: out of memory";  // outweighs the rest
  CHECK(net::unavailable(net::state_of(context)).message == "failed: worker: out of memory");
}

TEST_CASE("health_generate sends one token through the engine", "[net]") {
  auto config = support::quick_config();
  config.limits.health_generate_timeout = std::chrono::milliseconds(60);
  Running running(config);
  WireClient client(running.port());
  client.send(get("/health_generate"));
  auto request = running.service.next();
  CHECK(request.request.max_tokens == 1);
  for (auto& event : support::whole_answer({"x"})) request.sink(event);
  CHECK(client.read_reply().status == 200);

  client.send(get("/health_generate"));
  request = running.service.next();
  request.sink(actors::Failed{{kernels::ErrorCode::kInternal, "not finite", ""}});
  CHECK(client.read_reply().status == 503);

  running.service.refuse(kernels::Error{kernels::ErrorCode::kFull, "no credit", ""});
  const WireReply full = client.ask(get("/health_generate"));
  CHECK(full.status == 200);
  CHECK_THAT(full.body, Catch::Contains("busy"));
  running.service.refuse(std::nullopt);

  std::atomic<uint64_t> steps{0};  // an engine whose steps serve others
  running.service.before_metrics = [&] { running.service.numbers.scheduler.steps_total = ++steps; };
  CHECK(client.ask(get("/health_generate")).status == 200);
  running.service.wait_aborted(running.service.next().id);
  running.service.before_metrics = nullptr;

  client.send(get("/health_generate"));  // an engine that says nothing
  CHECK(client.read_reply().status == 503);
  request = running.service.next();
  running.service.wait_aborted(request.id);
}

TEST_CASE("models and server facts are JSON that names the model", "[net]") {
  Running running;
  running.service.numbers.pools.pages = {10, 4, 0, 6, 0, 0};
  WireClient client(running.port());
  CHECK(json::parse(client.ask(get("/v1/models")).body).at("data").at(0).at("id") == "tiny");
  CHECK(json::parse(client.ask(get("/v1/models/tiny")).body).at("id") == "tiny");
  CHECK(json::parse(client.ask(get("/v1/models/%74iny")).body).at("id") == "tiny");
  CHECK(client.ask(get("/v1/models/gpt-4")).status == 404);
  for (const char* path : {"/get_server_info", "/server_info"}) {
    const json::value facts = json::parse(client.ask(get(path)).body);
    CHECK(facts.at("model_path") == "/models/tiny");
    CHECK(facts.at("max_total_num_tokens") == 640);
  }
  for (const char* path : {"/get_model_info", "/model_info"}) {
    CHECK(json::parse(client.ask(get(path)).body).at("is_generation") == true);
  }
}

TEST_CASE("abort_request and flush_cache reach the engine", "[net]") {
  Running running;
  WireClient client(running.port());
  CHECK_THAT(client.ask(post("/abort_request", R"({"rid":"cmpl-1"})")).body,
             Catch::Contains(R"("aborted":2)"));
  CHECK_THAT(client.ask(post("/abort_request", R"({"abort_all":true,"rid":"x"})")).body,
             Catch::Contains(R"("aborted":3)"));
  CHECK(running.service.aborted_rids() == std::vector<std::string>{"cmpl-1"});
  for (const char* body :
       {"", "[]", "{}", R"({"rid":""})", R"({"rid":7})", R"({"abort_all":"yes"})", "{"}) {
    CAPTURE(body);
    CHECK(client.ask(post("/abort_request", body)).status == 400);
  }
  CHECK(running.service.aborted_rids().size() == 1);
  CHECK(client.ask(get("/flush_cache")).status == 200);
  CHECK(client.ask(post("/flush_cache", "")).status == 200);
  running.service.may_flush = false;
  CHECK(client.ask(post("/flush_cache", "")).status == 400);
}

TEST_CASE("every request gets an id", "[net]") {
  Running running;
  running.service.answer_at_once(support::whole_answer({"hello"}));
  WireClient client(running.port());
  const std::string first = client.ask(get("/health")).header("x-request-id");
  const std::string second = client.ask(get("/health")).header("x-request-id");
  CHECK(!first.empty());
  CHECK(first != second);
  const WireReply answer = client.ask(completion());
  CHECK(answer.header("x-request-id") == json::parse(answer.body).at("id").as_string().c_str());
}

TEST_CASE("a failure inside a handler is a 500 for that request alone", "[net]") {
  Running running;
  running.service.before_metrics = [] { throw std::runtime_error("no answer from the scheduler"); };
  WireClient client(running.port());
  const WireReply reply = client.ask(get("/metrics"));
  CHECK(reply.status == 500);
  CHECK_THAT(reply.body, Catch::StartsWith(R"({"error":{"message":)"));
  CHECK(client.ask(get("/health")).status == 200);
}

TEST_CASE("metrics are Prometheus text", "[net]") {
  Running running;
  auto& numbers = running.service.numbers;
  numbers.scheduler.running = 3;
  numbers.scheduler.prompt_tokens_total = 12345678901;
  numbers.pools.states = {4, 1, 0, 3, 0, 0};
  numbers.pools.pages = {100, 75, 0, 25, 0, 0};
  numbers.ttft_seconds = {{0.1, 1.0}, {5, 2, 1}, 4.5};
  running.service.facts.model_name = "a\"b\\c";
  WireClient client(running.port());
  const WireReply reply = client.ask(get("/metrics"));
  CHECK(reply.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  const std::string label = R"({model_name="a\"b\\c")";
  const std::vector<std::string> lines_expected = {
      "sluice:num_running_reqs" + label + "} 3\n",
      "sluice:prompt_tokens_total" + label + "} 12345678901\n",
      "sluice:token_usage" + label + "} 0.75\n",
      "sluice:kv_used_tokens" + label + "} 1600\n",
      "sluice:time_to_first_token_seconds_bucket" + label + R"(,le="0.1"} 5)" + "\n",
      "sluice:time_to_first_token_seconds_bucket" + label + R"(,le="1"} 7)" + "\n",
      "sluice:time_to_first_token_seconds_bucket" + label + R"(,le="+Inf"} 8)" + "\n",
      "sluice:time_to_first_token_seconds_count" + label + "} 8\n",
      "sluice:time_to_first_token_seconds_sum" + label + "} 4.5\n",
      "sluice:http_connections" + label + "} 1\n"};
  for (const auto& line : lines_expected) {
    CHECK_THAT(reply.body, Catch::Contains(line));
  }
  const std::regex comment(R"(# (HELP|TYPE) sluice:[a-z0-9_]+ .+)");
  const std::regex sample(R"(sluice:[a-z0-9_]+\{([a-z_]+="([^"\\]|\\.)*",?)+\} [0-9.e+-]+)");
  std::istringstream lines(reply.body);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK((std::regex_match(line, comment) || std::regex_match(line, sample)));
  }
}
