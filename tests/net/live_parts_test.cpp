// The parts of a live replay that need no server: addresses, events, counters, the progress line.
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "net/replay/answer_event.hpp"
#include "net/replay/event_reader.hpp"
#include "net/replay/progress_bar.hpp"
#include "net/replay/scenario.hpp"
#include "net/replay/server_address.hpp"
#include "net/replay/server_counters.hpp"

namespace {

std::vector<std::string> events_of(const std::string& bytes, std::mt19937& random) {
  net::EventReader reader;
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = 1 + random() % 7;
    reader.push(std::string_view(bytes).substr(at, size));
    at += size;
    if (random() % 3 == 0) continue;  // several pieces before anybody looks
    while (auto event = reader.next()) events.push_back(*event);
  }
  while (auto event = reader.next()) events.push_back(*event);
  return events;
}

}  // namespace

TEST_CASE("An address is host, port and prefix, with or without its scheme", "[replay]") {
  const auto parts = [](const char* url) {
    const net::ServerAddress address = net::parse_address(url);
    return std::vector<std::string>{address.host, address.port, address.prefix, address.url()};
  };
  using Parts = std::vector<std::string>;
  CHECK(parts("http://127.0.0.1:30000") ==
        Parts{"127.0.0.1", "30000", "", "http://127.0.0.1:30000"});
  CHECK(parts("localhost:8000/") == Parts{"localhost", "8000", "", "http://localhost:8000"});
  CHECK(parts("http://host/v1/") == Parts{"host", "80", "", "http://host"});
  CHECK(parts("http://host:1/a/b/v1") == Parts{"host", "1", "/a/b", "http://host:1/a/b"});
  CHECK(parts("http://[::1]:30000") == Parts{"::1", "30000", "", "http://[::1]:30000"});
  for (const char* bad : {"", "http://", "https://host:1", "host:", "host:99999", "host:12ab",
                          "http://[::1", "[::1]30000", ":30000"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(net::parse_address(bad), Catch::Contains("expected http://HOST:PORT"));
  }
}

TEST_CASE("Events are the same whatever the pieces they arrive in", "[replay][property]") {
  const std::vector<std::string> expected{R"({"a":1})", "two\nlines", "", "näïve", "[DONE]"};
  const std::vector<std::string> ends{"\n", "\r\n", "\r"};
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    const auto end = [&] { return ends[random() % ends.size()]; };
    // An end of CR is told from CR LF by the line's next byte.
    const auto line = [&](const std::string& text) { bytes += text + ends[random() % 2]; };
    const std::string last_end = end();
    line(": keep-alive");
    line("");
    line("event: message");
    line(R"(data: {"a":1})");
    line("");
    line("data:two");
    line("data: lines");
    line("");
    line("data");
    line("data:");
    line("id: 4");
    line("");
    bytes += "data: näïve" + last_end + last_end;
    line("data: [DONE]");
    line("");
    bytes += "data: an event that is not over\n";
    CAPTURE(round);
    REQUIRE(events_of(bytes, random) == expected);
  }
}

TEST_CASE("A chunk of an answer says whether it brings a token", "[replay]") {
  const auto read = [](const char* data) { return net::read_answer_event(data); };
  CHECK(read(R"({"choices":[{"text":"a","finish_reason":null}]})").token);
  CHECK(read(R"({"choices":[{"text":"","finish_reason":null}]})").token);  // half a character
  CHECK(read(R"({"choices":[{"text":"a","finish_reason":"length"}]})").token);
  CHECK_FALSE(read(R"({"choices":[{"text":"","finish_reason":"length"}]})").token);
  CHECK(read(R"({"choices":[{"text":"","finish_reason":"length"}]})").finished);
  CHECK_FALSE(read(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})").token);
  CHECK(read(R"({"choices":[{"delta":{"content":"a"}}]})").token);
  CHECK(read(R"({"choices":[{"delta":{"reasoning_content":"a"}}]})").token);
  CHECK(read(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})").token);
  CHECK_FALSE(read(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})").token);
  CHECK(read("[DONE]").done);

  const auto usage = read(R"({"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":9,)"
                          R"("prompt_tokens_details":{"cached_tokens":64}}})");
  REQUIRE(usage.usage.has_value());
  CHECK(usage.usage->prompt_tokens == 70);
  CHECK(usage.usage->output_tokens == 9);
  CHECK(usage.usage->cached_tokens == 64);
  const auto less = read(
      R"({"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":-1,"prompt_tokens_details":null}})");
  REQUIRE(less.usage.has_value());
  CHECK(less.usage->output_tokens == 0);
  CHECK(less.usage->cached_tokens == 0);
  CHECK_FALSE(read(R"({"choices":[{"text":"a"}],"usage":null})").usage.has_value());

  CHECK(read(R"({"error":{"message":"too long","code":400}})").error == "too long");
  CHECK(read(R"({"error":"busy"})").error == "busy");
  CHECK(read("{").error == "an event is no JSON object");
  CHECK(read("[1]").error == "an event is no JSON object");
}

TEST_CASE("A Sluice server's counters become what happened between two readings", "[replay]") {
  const auto text = [](int times) {
    const auto line = [&](const std::string& name, int value) {
      return "sluice:" + name + " " + std::to_string(value) + "\n";
    };
    return "# HELP sluice:steps_total Engine steps.\n# TYPE sluice:steps_total counter\n" +
           line(R"(steps_total{model_name="a } b"})", 100 * times) +
           line(R"(evicted_total{model_name="m",kind="state"})", 3 * times) +
           line(R"(evicted_total{model_name="m",kind="page"})", 7 * times) +
           line(R"(prefix_kv_hit_tokens_total{model_name="m"})", 640 * times) +
           line(R"(itl_bucket{model_name="m",le="0.1"})", 5) + line("page_size", 64) +
           line("num_pages_max", 1200) + line("num_states_max", 60) +
           line("num_pages", 1000) + line("kv_available_tokens", 64 * (900 - 100 * times)) +
           line("num_states", 50) + line("mamba_available_tokens", 50 - 10 * times) +
           line("num_running_reqs", times) + "other:thing 5\nsluice:broken\n";
  };
  const net::ServerCounters before(text(1)), after(text(3));
  net::PeakUse peak;
  peak.see(after);
  peak.see(before);
  const auto result = net::server_result(before, after, peak, 2);
  CHECK(result.at("steps") == 200);
  CHECK(result.at("evicted_states") == 6);
  CHECK(result.at("evicted_pages") == 14);
  CHECK(result.at("kv_hit_tokens") == 1280);
  CHECK(result.at("moves") == 0);
  CHECK(result.at("peak_rows") == 3);
  CHECK(result.at("peak_states") == 30);
  CHECK(result.at("peak_pages") == 400);
  CHECK(result.at("states_max") == 60);
  CHECK(result.at("pages_max") == 1200);
}

TEST_CASE("The progress line says how far, how fast and how long", "[replay]") {
  net::Progress progress{60, 240, 32, 0, 42, 410.24};
  CHECK(net::progress_line(progress) ==
        "[######..................] 60/240  32 open  410.2 tok/s  0:42  2:06 left");
  progress = {240, 240, 0, 3, 3725, 1};
  CHECK(net::progress_line(progress) ==
        "[########################] 240/240  0 open  3 failed  1 tok/s  1:02:05");
  CHECK(net::progress_line({}) == "[........................] 0/0  0 open  0 tok/s  0:00");
}

TEST_CASE("A scenario may name a live server instead of a modelled one", "[replay]") {
  const std::string trace = "[trace]\nfiles = \"t\"\n";
  const auto live = net::parse_scenario(
      trace +
          "[live]\nurl = \"http://h:1\"\napi-key = \"k\"\nmodel = \"m\"\ntext = true\n"
          "chat = true\nignore-eos = false\nvocabulary = 9\nretries = 3\nsilence-s = 0.5\n",
      "s.toml");
  CHECK_FALSE(live.has_server);
  CHECK(live.live.url == "http://h:1");
  CHECK(live.live.api_key == "k");
  CHECK(live.live.model == "m");
  CHECK((live.live.text && live.live.chat && !live.live.ignore_eos));
  CHECK(live.live.vocabulary == 9);
  CHECK(live.live.retries == 3);
  CHECK(live.live.silence_s == 0.5);
  CHECK(net::parse_scenario(trace + "[live]\nurl = \"x\"\n[server]\n", "s.toml").has_server);
  CHECK(net::parse_scenario(trace, "s.toml").has_server);
  CHECK_THROWS_WITH(net::parse_scenario(trace + "[live]\nurls = \"x\"\n", "s.toml"),
                    Catch::Contains("live.urls"));
}
