#include "net/replay/sweep.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "net/replay/process_queue.hpp"
#include "net/replay/scenario.hpp"
#include "net/replay/sweep_pictures.hpp"
#include "runtime/output_files.hpp"
#include "runtime/text_file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/xml_document.hpp"

namespace {

using net::GridAxis;
using net::Override;

template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

const std::string kScenario = R"(# A comment.
name = "base"
[trace]
files = "trace.csv"
[server]
layout = "TP8"
host-gb = 1.5
)";

// A point with the numbers that a result has.
net::SweepPoint point(const std::vector<Override>& settings, double tokens, double between,
                      double hit) {
  net::SweepPoint out;
  out.settings = settings;
  const boost::json::object times{{"mean", between}, {"p50", between}, {"p99", between}};
  out.result = {{"finished", 10},
                {"output_tokens_per_s", tokens},
                {"output_tokens_per_s_per_device", tokens / 8},
                {"ttft_s", times},
                {"itl_s", times},
                {"kv_hit_rate", hit},
                {"state_hit_rate", hit},
                {"server", boost::json::object{{"arena_gb", 41.0},
                                               {"host_gb", 0.0},
                                               {"page_kb", 2000.0},
                                               {"page_tokens", 64}}}};
  return out;
}

}  // namespace

TEST_CASE("A grid is every combination, the last axis fastest", "[replay]") {
  const std::vector<GridAxis> axes = {net::parse_grid_axis("server.layout=TP8,TP8-DCP8"),
                                      net::parse_grid_axis("seed=1,2,3")};
  CHECK(axes[0] == GridAxis{"server.layout", {"TP8", "TP8-DCP8"}});
  const auto points = net::grid_points(axes);
  REQUIRE(points.size() == 6);
  CHECK(points[0] == std::vector<Override>{{"server.layout", "TP8"}, {"seed", "1"}});
  CHECK(points[2] == std::vector<Override>{{"server.layout", "TP8"}, {"seed", "3"}});
  CHECK(points[3] == std::vector<Override>{{"server.layout", "TP8-DCP8"}, {"seed", "1"}});
  CHECK(net::grid_points({}).size() == 1);
  CHECK(net::parse_grid_axis("trace.files=['a','b'],\"c,d\"").values ==
        std::vector<std::string>{"['a','b']", "\"c,d\""});
  CHECK(net::parse_grid_axis("pace.phase=[{from-s = 0, concurrency = 2}]").values.size() == 1);
}

TEST_CASE("A grid that is none is refused", "[replay]") {
  const std::string wanted =
      "\" is no axis of a grid; expected KEY=VALUE,VALUE,..., as in server.layout=TP8,TP8-DCP8";
  for (const std::string text : {"", "seed", "=1", "seed=", "seed=1,,2"})
    CHECK(complaint([&] { net::parse_grid_axis(text); }) == "\"" + text + wanted);
  CHECK(complaint([] { net::grid_points({{"seed", {"1"}}, {"seed", {"2"}}}); }) ==
        "grid: seed is there twice");
  CHECK(complaint([] { net::grid_points({{"seed", {"1", "1"}}}); }) ==
        "grid: seed has a value twice");
}

TEST_CASE("Settings replace those of a scenario, or join them", "[replay]") {
  const auto read = [](const std::vector<Override>& overrides) {
    return net::parse_scenario(net::with_overrides(kScenario, "s.toml", overrides), "s.toml");
  };
  CHECK(read({}).server.layout == "TP8");
  const net::Scenario scenario = read({{"server.layout", "TP8-DCP8"},
                                       {"server.host-gb", "7"},
                                       {"pace.concurrency", "12"},
                                       {"pace.think", "false"},
                                       {"seed", "5"},
                                       {"name", "'12'"},
                                       {"trace.files", "['a', 'b']"}});
  CHECK(scenario.server.layout == "TP8-DCP8");
  CHECK(scenario.server.host_gb == 7);
  REQUIRE(scenario.pace.phases.size() == 1);
  CHECK(scenario.pace.phases[0].concurrency == 12);
  CHECK_FALSE(scenario.pace.think);
  CHECK(scenario.seed == 5);
  CHECK(scenario.name == "12");
  CHECK(scenario.trace.files == std::vector<std::string>{"a", "b"});
  CHECK(net::with_overrides(kScenario, "s", {{"seed", "5"}, {"name", "n"}}) ==
        net::with_overrides(kScenario, "s", {{"name", "n"}, {"seed", "5"}}));
}

TEST_CASE("A setting that cannot be is refused by name", "[replay]") {
  const auto refused = [](const Override& setting) {
    return complaint(
        [&] { net::parse_scenario(net::with_overrides(kScenario, "s.toml", {setting}), "s.toml"); });
  };
  CHECK(refused({"server.layuot", "TP8"}).find("s.toml: server.layuot is unknown; known are ") ==
        0);
  CHECK(refused({"severs.layout", "TP8"}) ==
        "s.toml: severs is unknown; known are faults, figure, grid, live, name, pace, "
        "seed, server, slo, trace");
  CHECK(refused({"name.first", "x"}) ==
        "s.toml: name.first cannot be set: name is no table");
  CHECK(refused({"server.host-gb", "many"}) ==
        "s.toml: server.host-gb is no number; expected a number from 0 to 1e+06");
  CHECK(complaint([] { net::parse_override("server.layout"); }) ==
        "\"server.layout\" is no setting; expected KEY=VALUE, as in server.layout=TP8");
  CHECK(complaint([] { net::with_overrides("a = 1\nb = \n", "s.toml", {}); }).find("s.toml:2: ") ==
        0);
}

TEST_CASE("A scenario holds its own sweep and what that is held to", "[replay]") {
  const std::string text = "grid = [\"server.layout=TP8,TP8-DCP8\", \"seed=1,2\"]\n" + kScenario +
                           "[[figure]]\nname = \"more\"\nresult = \"output_tokens_per_s\"\n"
                           "at = \"server.layout=TP8-DCP8\"\nover = [\"server.layout=TP8\"]\n"
                           "published = 2\nwithin = 0.5\n"
                           "[[figure]]\nname = \"p99\"\nresult = \"itl_s.p99\"\nunit = \"s\"\n"
                           "at = [\"server.layout=TP8\", \"seed=2\"]\n"
                           "[[figure]]\nname = \"not played\"\nresult = \"finished\"\n"
                           "at = \"server.layout=PP8\"\n";
  const net::Scenario scenario = net::parse_scenario(text, "s.toml");
  CHECK(scenario.grid.size() == 2);
  REQUIRE(scenario.figures.size() == 3);
  const Override tp8{"server.layout", "TP8"}, dcp8{"server.layout", "TP8-DCP8"};
  const std::vector<net::SweepPoint> points = {
      point({tp8, {"seed", "1"}}, 100, 0.1, 0.5), point({tp8, {"seed", "2"}}, 140, 0.2, 0.5),
      point({dcp8, {"seed", "1"}}, 300, 0.1, 0.5), point({dcp8, {"seed", "2"}}, 280, 0.1, 0.5)};
  const auto figures = net::predicted_figures("g", scenario.figures, points);
  REQUIRE(figures.size() == 2);
  CHECK(figures[0].group == "g");
  CHECK(figures[0].predicted == Approx(290.0 / 120.0));
  CHECK(figures[0].source == "2 points, 2 to 3");  // of the same seeds: 300 / 100, 280 / 140
  CHECK(figures[0].passes());
  CHECK(figures[1].predicted == 0.2);
  CHECK(figures[1].unit == "s");
  CHECK(figures[1].source == "1 point");
  CHECK(net::parse_scenario(net::without_sweep(text, "s.toml"), "s.toml").figures.empty());
  CHECK(complaint([&] {
          net::parse_scenario(text + "[[figure]]\nname = \"x\"\nresult = \"finished\"\n", "s.toml");
        }) == "s.toml: figure[3].at is missing; expected settings of the grid as KEY=VALUE");
}

TEST_CASE("Traces lie beside their scenario or where one says", "[replay]") {
  net::Scenario scenario = net::parse_scenario(kScenario, "/a/b/s.toml");
  net::locate_traces(scenario, "");
  CHECK(scenario.trace.files.front() == "/a/b/trace.csv");
  scenario = net::parse_scenario(kScenario, "s.toml");
  net::locate_traces(scenario, "/traces");
  CHECK(scenario.trace.files.front() == "/traces/trace.csv");
  scenario.trace.files = {"/x/y.csv"};
  net::locate_traces(scenario, "/traces");
  CHECK(scenario.trace.files.front() == "/x/y.csv");
}

TEST_CASE("Processes run so many at a time, and failures are told", "[replay]") {
  support::TemporaryDirectory directory;
  std::vector<net::ProcessCommand> commands;
  for (int i = 0; i < 6; ++i) {
    const std::string script =
        i == 4 ? "echo no such thing >&2; exit 3" : "exit 0";
    commands.push_back({{"/bin/sh", "-c", script}, directory.file("log" + std::to_string(i))});
  }
  commands.push_back({{"/no/such/program"}, directory.file("log6")});
  std::set<size_t> good, bad;
  net::run_processes(commands, 2, [&](size_t index, bool is_good) {
    CHECK((is_good ? good : bad).insert(index).second);
  });
  CHECK(good == std::set<size_t>{0, 1, 2, 3, 5});
  CHECK(bad == std::set<size_t>{4, 6});
  CHECK(runtime::read_text(directory.file("log4")) == "no such thing\n");
}

TEST_CASE("A sweep knows its points before it plays any", "[replay]") {
  support::TemporaryDirectory directory;
  runtime::write_file(directory.file("s.toml"), kScenario);
  net::SweepOptions options;
  options.scenario = directory.file("s.toml");
  options.directory = directory.file("out");
  options.grid = {{"server.layout", {"TP8", "PP8/x"}}, {"seed", {"1", "2"}}};
  options.settings = {{"server.max-running", "9"}};
  options.program = "/bin/false";
  const net::Sweep sweep(options);
  CHECK(sweep.name() == "base");
  REQUIRE(sweep.points().size() == 4);
  CHECK(sweep.points()[0].name == "run-server.layout=TP8,seed=1");
  const std::string odd = sweep.points()[2].name;
  CHECK(odd.rfind("run-server.layout=PP8_x,seed=1-", 0) == 0);
  const auto scenario = net::parse_scenario(sweep.points()[1].scenario, "x");
  CHECK(scenario.seed == 2);
  CHECK(scenario.server.max_running == 9);
  CHECK(scenario.trace.files.front() == directory.file("trace.csv"));
  CHECK_FALSE(std::filesystem::exists(directory.file("out")));

  options.grid.push_back({"server.layuot", {"TP8"}});
  CHECK(complaint([&] { net::Sweep refused(options); })
            .find(": server.layuot is unknown; known are ") != std::string::npos);
}

TEST_CASE("A point that fails is told, and the others are there", "[replay]") {
  support::TemporaryDirectory directory;
  runtime::write_file(directory.file("s.toml"), kScenario);
  // As the program would be called: run SCENARIO --json FILE.
  runtime::write_file(directory.file("player"),
                      "#!/bin/sh\ngrep -q 'seed = 2' \"$2\" && { echo broken >&2; exit 1; }\n"
                      "echo '{\"finished\": 1}' > \"$4\"\n");
  std::filesystem::permissions(directory.file("player"), std::filesystem::perms::owner_all);
  net::SweepOptions options;
  options.scenario = directory.file("s.toml");
  options.directory = directory.file("out");
  options.grid = {{"seed", {"1", "2", "3"}}};
  options.program = directory.file("player");
  std::ostringstream log;
  net::Sweep sweep(options);
  CHECK_FALSE(sweep.run(log));
  CHECK(log.str().find("3 points, 0 of them are there already\n") == 0);
  CHECK(log.str().find("run-seed=2 failed: broken\n") != std::string::npos);
  CHECK_FALSE(sweep.points()[0].result.empty());
  CHECK(sweep.points()[1].result.empty());

  // Only what is missing is played again, and what has changed.
  std::ostringstream again;
  CHECK_FALSE(net::Sweep(options).run(again));
  CHECK(again.str().find("3 points, 2 of them are there already\n1 of 1: run-seed=2 failed") == 0);
  runtime::write_file(directory.file("s.toml"), kScenario + "max-running = 3\n");
  std::ostringstream changed;
  CHECK_FALSE(net::Sweep(options).run(changed));
  CHECK(changed.str().find("3 points, 0 of them") == 0);
}

TEST_CASE("Points that differ by their seed are one mark, with its range", "[replay]") {
  std::vector<net::SweepPoint> sweep;
  for (const double load : {8, 16}) {
    for (const double seed : {1, 2}) {
      sweep.push_back(point({{"pace.concurrency", std::to_string(static_cast<int>(load))},
                             {"seed", std::to_string(static_cast<int>(seed))}},
                            load * 100 + seed * 10, 0.001 * load, 0.5));
    }
  }
  sweep.push_back(sweep.back());
  sweep.back().settings[1].value = "3";
  sweep.back().result.clear();  // it failed
  const auto groups = net::groups_of(sweep);
  REQUIRE(groups.size() == 2);
  CHECK(groups[1].points.size() == 3);
  const auto spread = groups[1].over(
      [](const boost::json::object& r) { return net::number_in(r, "output_tokens_per_s"); });
  CHECK(spread.mean == 1615);
  CHECK(spread.low == 1610);
  CHECK(spread.high == 1620);
  CHECK(net::cache_tokens(sweep.front().result) == Approx(41e9 / 2e6 * 64));

  const net::SweepTable points = net::point_table(sweep);
  CHECK(points.head[0] == "pace.concurrency");
  CHECK(points.rows.size() == 5);
  CHECK(points.rows[4][2] == "failed");
  CHECK(net::group_table(groups).rows[1][3] == "1615 (1610..1620)");
  const std::string text = net::table_text(points);
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);

  const auto pictures = net::sweep_pictures(groups);
  REQUIRE(pictures.size() == 2);
  CHECK(pictures[0].name == "frontier");
  CHECK(pictures[1].name == "throughput");
  const support::XmlDocument svg(pictures[1].svg);
  const auto drawn = svg.within("g", {{"class", "series"}}, "polyline");
  REQUIRE(drawn.size() == 1);
  CHECK(drawn.front().points().size() == 2);
  CHECK(svg.within("g", {{"class", "series"}}, "line").size() == 2);  // ranges
  const auto notes = support::XmlDocument(pictures[0].svg).find("text", {{"class", "note"}});
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].text == "8");
  CHECK(notes[1].text == "16");
}

TEST_CASE("Hit rates are drawn against memory, a line for each other setting", "[replay]") {
  std::vector<net::SweepPoint> sweep;
  for (const char* policy : {"benefit", "lru"}) {
    for (const double gigabytes : {100, 10, 50}) {
      sweep.push_back(point({{"server.eviction", policy},
                             {"server.host-gb", std::to_string(static_cast<int>(gigabytes))}},
                            100, 0.01, gigabytes / 200));
      sweep.back().result["server"].as_object()["host_gb"] = gigabytes;
    }
  }
  const auto pictures = net::sweep_pictures(net::groups_of(sweep));
  REQUIRE(pictures.size() == 2);
  CHECK(pictures[1].name == "hit-rate");
  const support::XmlDocument svg(pictures[1].svg);
  for (const char* name : {"eviction benefit", "eviction lru"}) {
    const auto line = svg.within("g", {{"data-name", name}}, "polyline");
    REQUIRE(line.size() == 1);
    const auto pixels = line.front().points();
    REQUIRE(pixels.size() == 3);
    CHECK(pixels[0].first < pixels[1].first);  // in order of memory
    CHECK(pixels[1].first < pixels[2].first);
    CHECK(pixels[0].second > pixels[1].second);  // more memory, more hits: higher up
    CHECK(pixels[1].second > pixels[2].second);
  }
}
