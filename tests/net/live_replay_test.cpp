// Live replay against a scripted server: what is sent, and what is made of what comes back.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <set>
#include <string>

#include "net/replay/live_requests.hpp"
#include "net/replay/live_run.hpp"
#include "net/trace/trace_reader.hpp"
#include "tests/net/trace_files.hpp"
#include "tests/support/fake_openai.hpp"

namespace {

namespace json = boost::json;
using support::FakeExchange;
using support::FakeOpenAi;
using Script = FakeOpenAi::Script;

// Two sessions of two turns in blocks of 4: the second turn goes on from the first after 50 ms.
net::Trace turns() {
  net::Trace trace;
  trace.block_tokens = 4;
  trace.has_prefixes = true;
  trace.clock = net::TraceClock::kOwn;
  for (uint32_t s = 0; s < 2; ++s) {
    trace.sessions.push_back({"s", 0, 2});
    for (uint32_t t = 0; t < 2; ++t) {
      net::TraceRequest request;
      request.session = s;
      request.blocks = t + 1;
      request.input_tokens = request.blocks * 4 + 1;
      request.output_tokens = 3;
      if (t > 0) {
        request.after = 2 * s;
        request.shared_with = 2 * s;
        request.shared_blocks = 1;
        request.think_s = 0.05;
        request.start_s = 0.05;
      }
      trace.requests.push_back(request);
    }
  }
  return trace;
}

net::Scenario scenario_for(const FakeOpenAi& server, const std::string& more = "") {
  net::Scenario scenario =
      net::parse_scenario("seed = 3\n[trace]\nfiles = \"t\"\n" + more, "test.toml");
  scenario.live.url = server.url();
  return scenario;
}

std::string text_event(const std::string& text, const char* finish = "null") {
  return R"({"choices":[{"index":0,"text":")" + text + R"(","finish_reason":)" + finish + "}]}";
}

const std::string kUsage =
    R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}})";

void whole_answer(FakeExchange& exchange) {
  exchange.begin_stream();
  for (const char* word : {"a", "b", "c"}) exchange.event(text_event(word));
  exchange.event(text_event("", "\"length\""));
  exchange.event(kUsage);
  exchange.event("[DONE]");
  exchange.end_stream();
}

// Answers what is asked before a replay; the rest is for `generate`.
Script with_facts(Script generate) {
  return [generate = std::move(generate)](FakeExchange& exchange) {
    const std::string& path = exchange.request().path;
    if (path == "/v1/models") {
      exchange.reply(200, R"({"data":[{"id":"tiny"},{"id":"other"}]})");
    } else if (path == "/get_model_info") {
      exchange.reply(200, R"({"vocab_size":500})");
    } else if (path.rfind("/v1/", 0) == 0) {
      generate(exchange);
    } else {
      exchange.reply(404, R"({"error":{"message":"no such path"}})");
    }
  };
}

std::vector<std::string> bodies(const FakeOpenAi& server, const std::string& path) {
  std::vector<std::string> found;
  for (const auto& request : server.requests(path)) found.push_back(request.body);
  return found;
}

std::string listed(const std::vector<int32_t>& ids) {
  json::array array;
  for (const int32_t id : ids) array.emplace_back(id);
  return json::serialize(array);
}

}  // namespace

TEST_CASE("Prompts known by blocks are sent as token ids that share what they share", "[replay]") {
  FakeOpenAi server(with_facts(whole_answer));
  net::Trace trace = turns();
  auto scenario = scenario_for(server, "[pace]\nmode = \"serial\"\n");
  scenario.live.api_key = "secret";
  const json::object result = net::run_live(scenario, trace, nullptr);

  net::PromptOptions options;
  options.seed = 3;
  options.vocabulary = 500;
  const net::PromptSource prompts(trace, options);
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto ids = prompts.prompt(i);
    REQUIRE(ids.size() == (i % 2 == 0 ? 5 : 9));
    expected.push_back(R"({"model":"tiny","prompt":)" + listed(ids) +
                       R"(,"max_tokens":3,"stream":true,"stream_options":{"include_usage":true})" +
                       R"(,"ignore_eos":true})");
  }
  CHECK(bodies(server, "/v1/completions") == expected);
  for (const auto& request : server.requests()) {
    CAPTURE(request.head);
    CHECK(request.head.find("\r\nAuthorization: Bearer secret") != std::string::npos);
    CHECK(request.head.find("Host: 127.0.0.1:") != std::string::npos);
  }
  CHECK(json::serialize(result).find("secret") == std::string::npos);
  CHECK(result.at("requests") == 4);
  CHECK(result.at("finished") == 4);
  CHECK(result.at("prompt_tokens") == 20);  // as the server counts
  CHECK(result.at("output_tokens") == 12);
  CHECK(result.at("state_hit_tokens") == 16);
  CHECK(result.at("state_hit_rate") == 0.8);
  CHECK(result.at("errors") == json::object());
  CHECK_FALSE(result.contains("kv_hit_tokens"));  // nobody says
}

TEST_CASE("Where token ids are not taken, words keep the tree of prompts", "[replay]") {
  FakeOpenAi server(with_facts(whole_answer));
  const net::Trace trace = turns();
  auto scenario = scenario_for(server, "[pace]\nmode = \"serial\"\n[live]\ntext = true\n");
  net::run_live(scenario, trace, nullptr);
  std::vector<std::string> texts;
  for (const std::string& body : bodies(server, "/v1/completions"))
    texts.emplace_back(json::parse(body).at("prompt").as_string());
  REQUIRE(texts.size() == 4);
  const size_t word = 5;  // four letters and a space
  CHECK(texts[0].size() == 5 * word);
  CHECK(texts[1].size() == 9 * word);
  CHECK(texts[1].substr(0, 4 * word) == texts[0].substr(0, 4 * word));
  CHECK(texts[1].substr(4 * word, word) != texts[0].substr(4 * word, word));
  CHECK(texts[2].substr(0, word) != texts[0].substr(0, word));

  scenario.live.chat = true;
  scenario.live.ignore_eos = false;
  net::run_live(scenario, trace, nullptr);
  CHECK(bodies(server, "/v1/chat/completions").front() ==
        R"({"model":"tiny","messages":[{"role":"user","content":")" + texts[0] +
            R"("}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}})");
}

TEST_CASE("Recorded messages are sent as they were, up to the turn", "[replay]") {
  const net::Trace trace = trace_files::read_text(
      R"({"session":"a","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},{"role":"tool","tool_call_id":"c1","content":"7"},{"role":"assistant","content":"seven"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})"
      "\n");
  FakeOpenAi server(with_facts(whole_answer));
  net::run_live(scenario_for(server), trace, nullptr);
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  const auto ending = [&](uint32_t request) {
    return tools + ",\"max_tokens\":" + std::to_string(trace.requests[request].output_tokens) +
           R"(,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true})";
  };
  const std::vector<std::string> expected{
      R"({"model":"tiny","messages":[{"role":"user","content":"hi"}],)" + ending(0),
      R"({"model":"tiny","messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":)"
      R"({"name":"f","arguments":"{\"x\": 1}"}}]},)"
      R"({"role":"tool","content":"7","tool_call_id":"c1"}],)" +
          ending(1)};
  CHECK(bodies(server, "/v1/chat/completions") == expected);
}

TEST_CASE("A streamed answer is heard whatever the pieces it comes in", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    std::string events = ": hello\r\n\r\n";
    for (const char* word : {"a", "\\u00e9", "c"})
      events += "data: " + text_event(word) + "\r\n\r\n";
    events += "data: " + text_event("", "\"length\"") + "\n\ndata: " + kUsage + "\n\n";
    events += "data: [DONE]\n\n";
    exchange.send("HTTP/1.1 200 OK\r\nTransfer-Enc");
    exchange.send("oding: chunked\r\n\r\n");
    // Chunks that end anywhere, sent in packets that end elsewhere.
    std::string wire;
    for (size_t at = 0, size = 1; at < events.size(); at += size, size = size % 11 + 1)
      wire += FakeExchange::chunk(events.substr(at, size = std::min(size, events.size() - at)));
    wire += "0\r\n\r\n";
    for (size_t at = 0; at < wire.size(); at += 5) exchange.send(wire.substr(at, 5));
  }));
  const auto result = net::run_live(scenario_for(server), turns(), nullptr);
  CHECK(result.at("finished") == 4);
  CHECK(result.at("output_tokens") == 12);
  CHECK(result.at("state_hit_tokens") == 16);
}

TEST_CASE("An answer without length or chunks ends with its connection", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: " + text_event("a") + "\n\n");
    exchange.send("data: " + text_event("b", "\"stop\"") + "\n\n");
  }));
  const auto result = net::run_live(scenario_for(server), turns(), nullptr);
  CHECK(result.at("finished") == 4);
  CHECK(result.at("output_tokens") == 8);  // heard: the server does not count
  CHECK(result.at("prompt_tokens") == 28);
}

TEST_CASE("A client that is told to come again does so when it was told", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    const uint32_t index = exchange.request().index;
    const std::string busy = R"({"error":{"message":"full"}})";
    if (index == 0) {
      exchange.reply(429, busy, "Retry-After: 30\r\nretry-after-ms: 120\r\n");
    } else if (index == 1) {
      exchange.reply(503, busy, "Retry-After: 0.05\r\n");
    } else {
      whole_answer(exchange);
    }
  }));
  const auto result =
      net::run_live(scenario_for(server, "[pace]\nmode = \"serial\"\n"), turns(), nullptr);
  CHECK(result.at("finished") == 4);
  CHECK(result.at("failed") == 0);
  CHECK(result.at("retries") == 2);
  const auto asked = server.requests("/v1/completions");
  REQUIRE(asked.size() == 6);
  CHECK(asked[1].arrival - asked[0].arrival >= std::chrono::milliseconds(120));
  CHECK(asked[2].arrival - asked[1].arrival >= std::chrono::milliseconds(50));
  CHECK(asked[1].body == asked[0].body);
  CHECK(asked[2].body == asked[0].body);
}

TEST_CASE("What fails is counted by its reason, and the replay goes on", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    const std::string full = R"({"error":{"message":"full"}})";
    switch (exchange.request().index) {
      case 0:
        exchange.reply(500, R"({"error":{"message":"a bug\nin line 4"}})");
        break;
      case 1:  // cut within an event
        exchange.begin_stream();
        exchange.event(text_event("a"));
        exchange.send(FakeExchange::chunk("data: {\"choi"));
        break;
      case 2:  // an error within the stream
        exchange.begin_stream();
        exchange.event(text_event("a"));
        exchange.event(R"({"error":{"message":"aborted"}})");
        exchange.end_stream();
        break;
      default:  // refused as often as it is tried
        exchange.reply(429, full, "retry-after-ms: 1\r\n");
    }
  }));
  const auto result = net::run_live(
      scenario_for(server, "[pace]\nmode = \"serial\"\n[live]\nretries = 2\n"), turns(), nullptr);
  CHECK(result.at("requests") == 4);
  CHECK(result.at("failed") == 4);
  CHECK(result.at("finished") == 0);
  CHECK(result.at("retries") == 2);
  CHECK(result.at("output_tokens") == 2);
  CHECK(result.at("errors") ==
        json::object{
            {"aborted", 1}, {"cut off", 1}, {"status 429: full", 1}, {"status 500: a bug", 1}});
}

TEST_CASE("A stream that ends in order but without an end is cut off", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    exchange.begin_stream();
    exchange.event(text_event("a"));
    exchange.end_stream();
  }));
  const auto result = net::run_live(scenario_for(server), turns(), nullptr);
  CHECK(result.at("errors") == json::object{{"cut off", 4}});
}

TEST_CASE("A client that leaves early closes its stream", "[replay]") {
  std::atomic<int> left{0};
  FakeOpenAi server(with_facts([&](FakeExchange& exchange) {
    exchange.begin_stream();
    for (int i = 0; i < 3; ++i) exchange.event(text_event("a"));
    if (exchange.client_left()) ++left;  // it leaves after one to three tokens
  }));
  const auto result =
      net::run_live(scenario_for(server, "[faults]\nleave-share = 1\n"), turns(), nullptr);
  CHECK(result.at("left") == 4);
  CHECK(result.at("failed") == 0);
  const auto heard = result.at("output_tokens").to_number<int>();
  CHECK((heard >= 4 && heard <= 12));
  while (left < 4) std::this_thread::yield();  // the test's own time-out is the bound
}

TEST_CASE("A client's patience ends with its deadline", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) {
    if (exchange.request().index == 0) {
      exchange.reply(429, "{}", "Retry-After: 1000\r\n");
    } else {
      exchange.begin_stream();
      exchange.event(text_event("a"));
      exchange.client_left();
    }
  }));
  const auto result =
      net::run_live(scenario_for(server, "[pace]\nmode = \"serial\"\n[faults]\ndeadline-s = 0.1\n"),
                    turns(), nullptr);
  CHECK(result.at("timed_out") == 4);
  CHECK(result.at("failed") == 0);
  CHECK(result.at("output_tokens") == 3);
}

TEST_CASE("A server that falls silent has failed the request", "[replay]") {
  FakeOpenAi server(with_facts([](FakeExchange& exchange) { exchange.client_left(); }));
  const auto result =
      net::run_live(scenario_for(server, "[live]\nsilence-s = 0.1\n"), turns(), nullptr);
  CHECK(result.at("errors") == json::object{{"silence", 4}});
}

TEST_CASE("In a closed loop the next turn follows the answer and the time to think", "[replay]") {
  std::mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> answered;
  FakeOpenAi server(with_facts([&](FakeExchange& exchange) {
    {
      std::lock_guard lock(mutex);
      answered.push_back(std::chrono::steady_clock::now());
    }
    whole_answer(exchange);
  }));
  net::run_live(scenario_for(server, "[pace]\nconcurrency = 1\n"), turns(), nullptr);
  const auto asked = server.requests("/v1/completions");
  REQUIRE(asked.size() == 4);
  CHECK(asked[1].arrival - answered[0] >= std::chrono::milliseconds(50));
  CHECK(asked[3].arrival - answered[2] >= std::chrono::milliseconds(50));
  CHECK(asked[2].arrival >= answered[1]);  // one session at a time
}

TEST_CASE("In an open loop nobody waits for answers, and many streams live at once", "[replay]") {
  constexpr uint32_t kMany = 200;
  net::Trace trace;
  trace.block_tokens = 4;
  trace.clock = net::TraceClock::kShared;
  for (uint32_t i = 0; i < kMany; ++i) {
    trace.sessions.push_back({"s", 0.0001 * i, 1});
    net::TraceRequest request;
    request.session = i;
    request.start_s = 0.0001 * i;
    request.input_tokens = 8;
    request.output_tokens = 3;
    trace.requests.push_back(request);
  }
  std::mutex mutex;
  std::condition_variable all_here;
  uint32_t here = 0;
  FakeOpenAi server(with_facts([&](FakeExchange& exchange) {
    {
      std::unique_lock lock(mutex);
      ++here;
      all_here.notify_all();
      all_here.wait(lock, [&] { return here == kMany; });  // nobody is answered before
    }
    whole_answer(exchange);
  }));
  const auto result =
      net::run_live(scenario_for(server, "[pace]\nmode = \"open\"\n"), trace, nullptr);
  CHECK(result.at("finished") == kMany);
  CHECK(result.at("output_tokens") == 3 * kMany);
}

TEST_CASE("A server that cannot be played against is named with what is missing", "[replay]") {
  net::Scenario scenario =
      net::parse_scenario("[trace]\nfiles = \"t\"\n[live]\nurl = \"http://127.0.0.1:1\"\n", "s");
  const net::Trace trace = turns();
  CHECK_THROWS_WITH(net::run_live(scenario, trace, nullptr),
                    Catch::Contains("no server answers at http://127.0.0.1:1"));
  scenario.live.url.clear();
  CHECK_THROWS_WITH(net::run_live(scenario, trace, nullptr), Catch::Contains("live.url"));
  {
    FakeOpenAi closed([](FakeExchange& exchange) { exchange.reply(401, "{}"); });
    CHECK_THROWS_WITH(net::run_live(scenario_for(closed), trace, nullptr),
                      Catch::Contains("expects a key"));
  }
  {
    FakeOpenAi nameless([](FakeExchange& exchange) { exchange.reply(200, R"({"data":[]})"); });
    CHECK_THROWS_WITH(net::run_live(scenario_for(nameless), trace, nullptr),
                      Catch::Contains("[live] model"));
  }
  FakeOpenAi plain([](FakeExchange& exchange) { exchange.reply(404, "{}"); });
  scenario = scenario_for(plain, "[live]\nmodel = \"m\"\n");
  CHECK_THROWS_WITH(net::run_live(scenario, trace, nullptr), Catch::Contains("live.vocabulary"));
}
