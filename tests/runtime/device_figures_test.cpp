// The modelled devices against what is published of K3: closed loops, separate prefill and decode,
// trimming, and the table of all figures.
#include "runtime/sim/device_figures.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "runtime/sim/figure_inputs.hpp"
#include "runtime/sim/pd_rates.hpp"
#include "runtime/sim/prefill_load.hpp"
#include "runtime/sim/trim_panel.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using runtime::DeviceFigure;

const std::string kConfig = SLUICE_SOURCE_DIR "/config";

const runtime::FigureInputs& inputs() {
  static const runtime::FigureInputs read(kConfig);
  return read;
}

double prefill(const runtime::DeviceFile& device, const std::string& layout, uint32_t clients) {
  runtime::PrefillLoad load;
  load.clients = clients;
  return runtime::prefill_rate(inputs().model(device, layout), load).tokens_per_s;
}

}  // namespace

TEST_CASE("Prefill in a closed loop is that of a second implementation", "[runtime][sim]") {
  const auto about = [](double value) { return Approx(value).epsilon(1e-9); };
  CHECK(prefill(inputs().gb200, "PP16", 32) == about(70824.44874075605));
  CHECK(prefill(inputs().gb200, "PP8xTP2", 16) == about(55912.37122943345));
  CHECK(prefill(inputs().gb200, "TP16", 32) == about(25846.63285193709));
  CHECK(prefill(inputs().gb300, "PP8", 3) == about(13270.315323001581));
  CHECK(prefill(inputs().gb300, "PP8", 64) == about(37590.98590783607));
}

TEST_CASE("One client's prefill rate is its prompt over its answer's time", "[runtime][sim]") {
  const auto model = inputs().model(inputs().gb300, "TP8");
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
  const auto dcp8 = inputs().model(inputs().gb300, "TP8xDCP8", fp8);
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
  const auto model = inputs().model(inputs().gb300, "TP8");
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
  const auto figures = runtime::device_figures(kConfig);
  const auto tested = std::count_if(figures.begin(), figures.end(),
                                    [](const DeviceFigure& f) { return f.is_tested(); });
  CHECK(tested >= 30);
  // Known misses stay on the list: nothing was tuned to remove them.
  const std::string known_miss = "chat, 4 requests, gain of trimming";
  for (const DeviceFigure& figure : figures) {
    CAPTURE(figure.group, figure.name, figure.predicted);
    CHECK(figure.passes() == (figure.name != known_miss));
  }
  std::ostringstream first, second;
  CHECK_FALSE(runtime::write_device_figures(first, kConfig));
  runtime::write_device_figures(second, kConfig);
  CHECK(first.str() == second.str());
  CHECK_THAT(first.str(), Catch::Contains(known_miss + ", predicted"));
  CHECK_THAT(first.str(), Catch::Contains("PP4xTP2 over TEP8, 32 clients, predicted"));
  CHECK_THAT(first.str(), Catch::Contains("gap_us = 2"));
}

TEST_CASE("A figure passes inside its bounds alone", "[runtime][sim]") {
  std::vector<DeviceFigure> figures;
  runtime::FigureGroup group("g", figures);
  group.add("a", "x", 114).against(100).within(0.15);
  group.add("b", "x", 116).against(100).within(0.15);
  group.add("c", "x", 130).against(100);
  group.add("d", "x", 110).against(100);
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
  CHECK(inputs().pd_points.size() == 69);
  const auto& best = inputs().pd_points;
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
