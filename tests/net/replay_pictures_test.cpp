#include "net/replay/replay_pictures.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "net/replay/modelled_setup.hpp"
#include "net/replay/report_page.hpp"
#include "net/replay/scenario_run.hpp"
#include "runtime/sim/step_model_clock.hpp"
#include "tests/net/agent_trace.hpp"
#include "tests/support/xml_document.hpp"

namespace {

using support::XmlDocument;

// A server that has to evict, with or without a border in its arena and a host tier.
net::Scenario scenario(const std::string& server) {
  return net::parse_scenario(
      "seed = 3\n[trace]\nfiles = 'unused'\n[pace]\nmode = 'closed'\nconcurrency = 8\n"
      "[server]\nlayout = 'TP8'\nmax-running = 4\nchunk-tokens = 1024\nkv-tokens = 20000\n" +
          server,
      "s.toml");
}

// A replay and all that it refers to.
struct Played {
  net::Trace trace;
  net::ModelledSetup setup;
  net::PromptSource prompts;
  runtime::StepModelClock clock;
  net::ModelledReplay replay;
  explicit Played(const std::string& server)
      : trace(agent_trace(5, 20, 6)),
        setup(net::make_modelled_setup(scenario(server).server, SLUICE_SOURCE_DIR "/config")),
        prompts(trace, {}),
        clock(*setup.model, 64),
        replay({setup.server, scenario(server).pace, {}, {}}, trace,
               net::select_sessions(trace, {}, 1), prompts, clock) {
    replay.run();
  }
};

}  // namespace

TEST_CASE("States, KV and what is free are the arena at every moment", "[replay]") {
  const std::string server = GENERATE("", "state-share = 0.5", "host-gb = 2");
  CAPTURE(server);
  const Played played(server);
  const auto& points = played.replay.timeline().points();
  REQUIRE(points.size() > 100);
  REQUIRE(points.size() <= net::ReplayTimeline::kPointsMax);
  const uint64_t arena = played.setup.server.cache.arena.arena_bytes;
  uint32_t most_running = 0, most_queued = 0;
  uint64_t most_cached = 0, most_host = 0, output_tokens = 0, prompt_tokens = 0;
  for (const net::TimelinePoint& point : points) {
    const net::ReplayGauges& now = point.at_end;
    CHECK(now.running_states + now.cached_states + now.running_kv + now.cached_kv + now.free ==
          arena);
    CHECK((now.running == 0) == (now.running_states == 0));
    most_running = std::max(most_running, now.running);
    most_queued = std::max(most_queued, now.queued);
    most_cached = std::max(most_cached, now.cached_kv);
    most_host = std::max(most_host, now.host);
    output_tokens += point.output_tokens;
    prompt_tokens += point.prompt_tokens;
  }
  CHECK(most_running <= 4);
  CHECK(most_queued > 0);
  CHECK(most_cached > 0);
  CHECK((most_host > 0) == (server == "host-gb = 2"));
  const auto result = played.replay.result();
  CHECK(output_tokens == result.at("output_tokens").to_number<uint64_t>());
  const uint64_t computed = result.at("prompt_tokens").to_number<uint64_t>() -
                            result.at("state_hit_tokens").to_number<uint64_t>();
  CHECK(prompt_tokens >= computed);

  // What the pool itself says of the last moment.
  const auto& pool = played.replay.server().cache().pool();
  const net::ReplayGauges& last = points.back().at_end;
  const auto counts = pool.counts();
  CHECK(last.cached_states == counts.states.held * pool.state_region().block_bytes);
  CHECK(last.cached_kv == counts.pages.held * pool.page_region().block_bytes);
  if (pool.unified()) CHECK(last.free / pool.page_region().block_bytes == counts.pages.free);
  CHECK(last.running_states + last.running_kv == 0);
}

TEST_CASE("Pictures of a replay show what was recorded", "[replay]") {
  const Played played("host-gb = 2");
  std::map<std::string, std::string> pictures;
  for (const net::Picture& picture : net::replay_pictures(played.replay, *played.setup.model)) {
    CAPTURE(picture.name);
    CHECK(picture.svg.find("nan") == std::string::npos);
    CHECK(pictures.emplace(picture.name, picture.svg).second);
  }
  std::string names;
  for (const auto& [name, svg] : pictures) names += name + " ";
  CHECK(names == "arena decode-step host prefill-step requests times tokens ");

  const XmlDocument arena(pictures["arena"]);
  const auto edge = [&](const char* name) {
    const auto band = arena.within("g", {{"data-name", name}}, "polygon");
    REQUIRE(band.size() == 1);
    return band.front().points();
  };
  const auto running = edge("states, running"), cached = edge("states, cached");
  const auto kv = edge("KV, cached"), top = edge("KV, running");
  const size_t count = played.replay.timeline().points().size();
  for (const auto& band : {running, cached, kv, top}) REQUIRE(band.size() == 2 * count);
  // Of a band, the upper edge comes first and the lower one follows backwards.
  double floor = 0, ceiling = 1e9;
  for (const auto& [x, y] : running) floor = std::max(floor, y);
  for (const auto& [x, y] : top) ceiling = std::min(ceiling, y);
  for (size_t i = 0; i < count; ++i) {
    const size_t low = 2 * count - 1 - i;
    CHECK(running[low].second == floor);
    CHECK(running[i].second == cached[low].second);
    CHECK(cached[i].second >= kv[low].second);  // free between them; pixels count downwards
    CHECK(kv[i].second == top[low].second);
    CHECK(top[i].second == ceiling);
  }

  // Shares of a distribution rise to 100 %.
  const XmlDocument times(pictures["times"]);
  for (const char* name : {"time to first token", "between tokens", "whole answer"}) {
    const auto line = times.within("g", {{"data-name", name}}, "polyline");
    REQUIRE(line.size() == 1);
    const auto points = line.front().points();
    for (size_t i = 1; i < points.size(); ++i) CHECK(points[i].second <= points[i - 1].second);
    for (const auto& text : times.find("text", {{"class", "y"}}))
      if (text.text == "100") CHECK(points.back().second == Approx(text.number("y") - 4.5));
  }

  // Bars of a step begin where the last one ended, and the last is the whole.
  const XmlDocument step(pictures["decode-step"]);
  const auto bars = step.within("g", {{"class", "series"}}, "rect");
  REQUIRE(bars.size() >= 5);
  for (size_t i = 1; i + 1 < bars.size(); ++i) {
    CHECK(bars[i].number("x") ==
          Approx(bars[i - 1].number("x") + bars[i - 1].number("width")).margin(0.021));
  }
  CHECK(bars.back().number("x") == bars.front().number("x"));
  CHECK(bars.back().number("width") ==
        Approx(bars[bars.size() - 2].number("x") + bars[bars.size() - 2].number("width") -
               bars.front().number("x"))
            .margin(0.03));
}

TEST_CASE("Drawing a run does not change its result, and is the same each time", "[replay]") {
  const auto trace = agent_trace(6, 10, 5);
  const net::Scenario played = scenario("");
  std::vector<net::Picture> once, again;
  const std::string config = SLUICE_SOURCE_DIR "/config";
  const auto plain = net::run_scenario(played, trace, config);
  CHECK(net::run_scenario(played, trace, config, &once) == plain);
  CHECK(net::run_scenario(played, trace, config, &again) == plain);
  REQUIRE(once.size() == again.size());
  for (size_t i = 0; i < once.size(); ++i) CHECK(once[i].svg == again[i].svg);
}

TEST_CASE("A report is one document with its tables and pictures", "[replay]") {
  net::ReportPage page("A & B");
  page.heading("Result < 1");
  page.table({"name", "value"}, {{"requests", "120"}, {"layout", "TP8"}});
  page.picture("<svg xmlns=\"http://www.w3.org/2000/svg\"><title>p</title></svg>\n");
  page.preformatted("[server]\nlayout = \"TP8\" # <b>\n");
  const std::string html = page.html();
  const XmlDocument document(html.substr(html.find("<html")));
  CHECK(document.find("title").front().text == "A & B");
  CHECK(document.find("h2").front().text == "Result < 1");
  CHECK(document.find("td").size() == 4);
  CHECK(document.find("td", {{"class", "number"}}).front().text == "120");
  CHECK(document.find("svg").size() == 1);
  CHECK(document.find("pre").front().text == "[server]\nlayout = \"TP8\" # <b>\n");
  CHECK(html.find("http", html.find("http") + 1) == std::string::npos);  // but the SVG's name
}
