// The modelled devices against what is published of K3: closed loops, separate prefill and decode,
// trimming, and the table of all figures.
#include "runtime/sim/experiment.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "runtime/sim/pd_points.hpp"
#include "runtime/sim/pd_rates.hpp"
#include "runtime/sim/prefill_load.hpp"
#include "runtime/sim/trim_panel.hpp"
#include "runtime/text_file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using runtime::DeviceFigure;

const std::string kConfig = SLUICE_SOURCE_DIR "/config";

runtime::ExperimentBase base(const std::string& device) {
  return {kConfig, runtime::read_device(kConfig + "/devices/" + device + ".toml"),
          runtime::ModelGeometry::load(kConfig + "/geometries/kimi-k3.json")};
}

double prefill(const std::string& device, const std::string& layout, uint32_t clients) {
  runtime::PrefillLoad load;
  load.clients = clients;
  return runtime::prefill_rate(base(device).model(layout), load).tokens_per_s;
}

// Figures of a scenario that is written here.
std::vector<DeviceFigure> figures_of(const std::string& experiment, const std::string& figures) {
  const std::string text = "name = \"here\"\n[experiment]\n" + experiment + figures;
  return runtime::run_experiment(text, "s.toml", kConfig).figures;
}

}  // namespace

TEST_CASE("Prefill in a closed loop is that of a second implementation", "[runtime][sim]") {
  const auto about = [](double value) { return Approx(value).epsilon(1e-9); };
  CHECK(prefill("gb200", "PP16", 32) == about(70824.44874075605));
  CHECK(prefill("gb200", "PP8xTP2", 16) == about(55912.37122943345));
  CHECK(prefill("gb200", "TP16", 32) == about(25846.63285193709));
  CHECK(prefill("gb300", "PP8", 3) == about(13270.315323001581));
  CHECK(prefill("gb300", "PP8", 64) == about(37590.98590783607));
}

TEST_CASE("One client's prefill rate is its prompt over its answer's time", "[runtime][sim]") {
  const auto model = base("gb300").model("TP8");
  runtime::PrefillLoad load;
  load.arrival_us = 0;
  const auto rate = runtime::prefill_rate(model, load);
  runtime::StepShape shape;
  shape.add_prefill(0, 8192);
  CHECK(rate.answer_us == Approx(model.step_us(shape)));
  CHECK(rate.tokens_per_s == Approx(8192 / model.step_us(shape) * 1e6));
}

TEST_CASE("Separate prefill and decode deliver what the slower one does", "[runtime][sim]") {
  runtime::StepOptions fp8;
  fp8.kv = runtime::KvType::kFp8;
  const auto dcp8 = base("gb300").model("TP8xDCP8", fp8);
  runtime::PdCluster cluster;
  cluster.decode = &dcp8;
  cluster.decode_servers = 2;
  cluster.devices = 32;
  cluster.prefill_tokens_per_s = 1e9;
  CHECK(runtime::pd_step_us(cluster, 256) == Approx(57270.12849130718).epsilon(1e-9));
  const auto free = runtime::pd_rates(cluster, 256);
  CHECK_FALSE(free.prefill_bound);
  CHECK(free.device_tokens_per_s == Approx(2 * 256 / 57270.12849130718e-6 * 9 / 32));
  CHECK(free.user_tokens_per_s == Approx(1e6 / 57270.12849130718));
  cluster.prefill_tokens_per_s = 8192;  // one answer of 1024 tokens a second
  const auto starved = runtime::pd_rates(cluster, 256);
  CHECK(starved.prefill_bound);
  CHECK(starved.device_tokens_per_s == Approx(1024.0 * 9 / 32));
  const uint32_t balance = runtime::pd_balance(cluster, 256);
  CHECK(balance < 256);
  CHECK(runtime::pd_rates(cluster, balance).prefill_bound);
  CHECK((balance == 1 || !runtime::pd_rates(cluster, balance - 1).prefill_bound));
}

TEST_CASE("An acceptance mean gives the length it was asked for", "[runtime][sim]") {
  for (const double length : {1.5, 2.7, 5.0, 7.5}) {
    const double p = runtime::acceptance_mean(length);
    double sum = 1, power = 1;
    for (int i = 0; i < 7; ++i) sum += power *= p;
    CHECK(sum == Approx(length));
  }
}

TEST_CASE("Trimming is repeatable, never lengthens a run and wins under load", "[runtime][sim]") {
  const auto model = base("gb300").model("TP8");
  runtime::TrimPanel panel;
  panel.requests = 64;
  panel.acceptance = {runtime::acceptance_mean(2.7), 0.5};
  panel.steps = 60;
  const auto gain = runtime::trim_gain(model, panel);
  CHECK(gain.gain > 0.1);
  CHECK(gain.trimmed_length <= gain.full_length);
  CHECK(gain.trimmed_length > 1);
  CHECK(gain.full_length == Approx(2.7).epsilon(0.05));
  CHECK(runtime::trim_gain(model, panel).gain == gain.gain);
  panel.seed = 2;
  CHECK(runtime::trim_gain(model, panel).gain != gain.gain);
  CHECK(runtime::trim_gain(model, panel).gain == Approx(gain.gain).margin(0.05));
}

TEST_CASE("The published figures are met where they are tested, and misses are listed",
          "[runtime][sim]") {
  std::vector<runtime::ExperimentResult> results;
  for (const std::string& path : runtime::shipped_experiments(kConfig))
    results.push_back(runtime::run_experiment(runtime::read_text(path), path, kConfig));
  CHECK(results.size() == 9);
  // Known misses stay on the list: nothing was tuned to remove them.
  const std::string known_miss = "chat, 4 requests, gain of trimming";
  size_t tested = 0;
  for (const auto& result : results) {
    for (const DeviceFigure& figure : result.figures) {
      CAPTURE(figure.group, figure.name, figure.predicted);
      CHECK(figure.passes() == (figure.name != known_miss));
      tested += figure.is_tested() ? 1 : 0;
    }
  }
  CHECK(tested >= 40);
  std::ostringstream out;
  runtime::write_experiments(out, results);
  CHECK_THAT(out.str(), Catch::Contains(known_miss + ", predicted"));
  CHECK_THAT(out.str(), Catch::Contains("PP4xTP2 over TEP8, 32 clients, predicted"));
  CHECK_THAT(out.str(), Catch::Contains("gap_us = 2"));
}

TEST_CASE("An experiment asks for other layouts, batches and devices", "[runtime][sim]") {
  const auto rate = figures_of("kind = \"prefill\"\ndevice = \"gb200\"\n",
                               "[[figure]]\nname = \"a\"\nlayout = \"PP8xTP2\"\nclients = 16\n"
                               "[[figure]]\nname = \"b\"\nlayout = \"PP8xTP2\"\nover = \"TP16\"\n"
                               "clients = 16\npublished = 2\nwithin = 0.5\n");
  REQUIRE(rate.size() == 2);
  CHECK(rate[0].predicted == Approx(prefill("gb200", "PP8xTP2", 16) / 16));
  CHECK(rate[0].group == "here");
  CHECK_FALSE(rate[0].is_tested());
  CHECK(rate[1].predicted ==
        Approx(prefill("gb200", "PP8xTP2", 16) / prefill("gb200", "TP16", 16)));
  CHECK(rate[1].low == 1.0);
  CHECK(rate[1].high == 3.0);

  const auto step = figures_of("kind = \"step\"\ncontext = 4096\n",
                               "[[figure]]\nname = \"a\"\nrequests = 3\ntokens = 8\nas = \"ms\"\n");
  runtime::StepShape shape;
  for (int i = 0; i < 3; ++i) shape.add_decode(4096, 8);
  CHECK(step.at(0).predicted == Approx(base("gb300").model("TP8").step_us(shape) / 1e3));
  CHECK(step.at(0).unit == "ms");
}

TEST_CASE("Experts' rows that are exchanged take their time in every mixture", "[runtime][sim]") {
  const auto gb300 = base("gb300");
  runtime::StepOptions exchange;
  exchange.expert_exchange = true;
  runtime::StepShape one;
  one.add_decode(1024);
  const auto plain = gb300.model("TEP8").breakdown(one);
  const auto exchanged = gb300.model("TEP8", exchange).breakdown(one);
  const auto collectives = runtime::CostClass::kCollectives;
  CHECK(exchanged[collectives].launches == plain[collectives].launches + 92);
  const double more = exchanged[collectives].us - plain[collectives].us;
  const double each = gb300.device.params.expert_exchange_us - gb300.device.params.gap_us;
  CHECK(more == Approx(92 * each).epsilon(0.01));
  // Experts that every rank has a slice of are not exchanged, nor is a prompt's.
  CHECK(gb300.model("TP8", exchange).step_us(one) == gb300.model("TP8").step_us(one));
  runtime::StepShape prompt;
  prompt.add_prefill(0, 1024);
  CHECK(gb300.model("TEP8", exchange).step_us(prompt) == gb300.model("TEP8").step_us(prompt));
}

TEST_CASE("An experiment that cannot be is refused by file and key", "[runtime][sim]") {
  const auto refused = [](const std::string& experiment, const std::string& figures,
                          const std::string& message) {
    CHECK_THROWS_WITH(figures_of(experiment, figures), Catch::Contains("s.toml: " + message));
  };
  const std::string prefill = "kind = \"prefill\"\n", row = "[[figure]]\nname = \"f\"\n";
  refused("", row, "experiment.kind is missing");
  refused("kind = \"prefil\"\n", row, "experiment.kind is \"prefil\"; expected one of");
  refused(prefill + "batch-tokens = 100\n", row, "experiment.batch-tokens is less than");
  refused(prefill, "", "figure is missing");
  refused(prefill, row, "figure[0].layout is missing");
  refused(prefill, row + "layout = \"TP8\"\nclient = 3\n", "figure[0].client is unknown");
  refused(prefill, row + "layout = \"TP8\"\nwithin = 0.1\n", "figure[0].within needs `published`");
  refused(prefill, row + "layout = \"TP7\"\n", "f: layout TP7");
  refused("kind = \"step\"\n", row + "fusions = [\"launch\"]\n",
          "figure[0].fusions has \"launch\"");
  refused("kind = \"step\"\n", row + "as = \"ratio\"\n", "figure[0].as must be");
  refused("kind = \"frontier\"\npoints = \"figures/pd-frontier.csv\"\n",
          row + "points = [\"TP4\"]\n", "figure[0].points has none");
}

TEST_CASE("A figure passes inside its bounds alone", "[runtime][sim]") {
  std::vector<DeviceFigure> figures(4);
  for (size_t i = 0; i < figures.size(); ++i) {
    figures[i].group = "g";
    figures[i].name = std::string(1, static_cast<char>('a' + i));
    figures[i].predicted = std::vector<double>{114, 116, 130, 110}[i];
    figures[i].published = 100;
    if (i < 2) figures[i].within(0.15);
  }
  CHECK(figures[0].passes());
  CHECK_FALSE(figures[1].passes());
  CHECK(figures[1].is_miss());
  CHECK_FALSE(figures[2].is_tested());
  CHECK(figures[2].is_miss());
  CHECK(figures[2].error() == Approx(0.3));
  CHECK_FALSE(figures[3].is_miss());
  std::ostringstream out;
  runtime::write_figures(out, figures);
  CHECK_THAT(out.str(), Catch::Contains("1 of 2 tested figures"));
  CHECK_THAT(out.str(), Catch::Contains("  g: b, predicted 116.0, published 100.0"));
}

TEST_CASE("The frontier's points are read, and a bad row is refused by line", "[runtime][sim]") {
  const auto best = runtime::read_pd_points(kConfig + "/figures/pd-frontier.csv");
  CHECK(best.size() == 69);
  CHECK(std::any_of(best.begin(), best.end(), [](const auto& p) { return p.device_tps == 2633; }));
  const support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/points.csv";
  const auto refused = [&](const std::string& row, const std::string& message) {
    std::ofstream(path) << "# a comment\nsweep,prefill,n,decode,m,devices,user,device\n" << row;
    CHECK_THROWS_WITH(runtime::read_pd_points(path), Catch::Contains(path + ":3: " + message));
  };
  refused("main,PP8,1,TP8,1,16,18.7", "7 columns; expected 8");
  refused("main,PP8,1,TP8,1,16,fast,2715", "\"fast\" is no positive number");
  refused("main,PP8,0,TP8,1,16,18.7,2715", "\"0\" is no positive number");
  refused("main,PP8,1,TQ8,1,16,18.7,2715", "layout TQ8");
}
