// sluice-replay: recorded traffic. `inspect` says what a trace holds, `hits` what a cache finds of
// it, `run` plays it on a modelled server and `sweep` on many, `live` on a running one, which
// `calibrate` measures to model it; `figures` holds modelled devices against published ones.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "apps/run_program.hpp"
#include "net/replay/calibration.hpp"
#include "net/replay/hit_check.hpp"
#include "net/replay/live_run.hpp"
#include "net/replay/report_page.hpp"
#include "net/replay/scenario_overrides.hpp"
#include "net/replay/scenario_run.hpp"
#include "net/replay/sweep_pictures.hpp"
#include "net/trace/trace_facts.hpp"
#include "net/trace/trace_reader.hpp"
#include "runtime/canonical_json.hpp"
#include "runtime/output_files.hpp"
#include "runtime/shipped_files.hpp"
#include "runtime/sim/experiment.hpp"
#include "runtime/text_file.hpp"

namespace {

std::string as_json(const boost::json::value& value) {
  return runtime::write_json(runtime::to_json_node(value), runtime::kSpacedJson) + "\n";
}

void add_trace_options(CLI::App& command, std::vector<std::string>& files,
                       net::TraceOptions& options) {
  options.model = runtime::shipped_model();
  command
      .add_option("FILE", files,
                  "Trace: Mooncake jsonl, kv-cache-tester json or tree csv, OpenAI messages jsonl, "
                  "Azure csv or a record of sluice-serve; gzip or plain")
      ->required();
  command
      .add_option("--block-tokens", options.block_tokens,
                  "Tokens of a block, where the file does not say; 0 = 512 for Mooncake, else 64")
      ->check(CLI::Range(0u, 1u << 20))
      ->capture_default_str();
  command
      .add_option("--model", options.model,
                  "Directory of the model whose template and tokenizer read messages")
      ->capture_default_str();
}

void add_inspect(CLI::App& app) {
  struct Inspect {
    std::vector<std::string> files;
    net::TraceOptions options;
    bool json = false;
  };
  auto* command = app.add_subcommand(
      "inspect", "Print what a trace holds: requests, sessions, lengths, shared prefixes");
  auto inspect = std::make_shared<Inspect>();
  add_trace_options(*command, inspect->files, inspect->options);
  command->add_flag("--json", inspect->json, "Print one JSON object instead of text");
  command->final_callback([inspect] {
    const net::Trace trace = net::read_trace(inspect->files, inspect->options);
    const net::TraceFacts facts = net::facts_of(trace);
    if (!inspect->json) {
      std::cout << net::facts_text(trace, facts);
      return;
    }
    std::cout << as_json(net::facts_json(trace, facts));
  });
}

void add_hits(CLI::App& app) {
  struct Hits {
    std::vector<std::string> files;
    net::TraceOptions options;
    bool json = false;
  };
  auto* command =
      app.add_subcommand("hits",
                         "Play a trace one request at a time on the real scheduler and cache, with "
                         "room for everything "
                         "and the trace's blocks as pages: what the cache finds of each prompt");
  auto hits = std::make_shared<Hits>();
  add_trace_options(*command, hits->files, hits->options);
  command->add_flag("--json", hits->json, "Print one JSON object a request, and one of the sums");
  command->final_callback([hits] {
    const net::Trace trace = net::read_trace(hits->files, hits->options);
    net::write_hits(net::check_hits(trace), hits->json, std::cout);
  });
}

// The options of whatever plays a scenario.
struct Play {
  std::string scenario, traces;
  std::vector<std::string> settings;
  net::TraceOptions options;
};

void add_play_options(CLI::App& command, Play& play) {
  play.options.model = runtime::shipped_model();
  command.add_option("SCENARIO", play.scenario, "TOML file: traffic, pace, faults and server")
      ->required();
  command.add_option("--traces", play.traces,
                     "Directory that paths of traces start from; the scenario's own by default");
  command.add_option("--set", play.settings,
                     "KEY=VALUE: a setting of the scenario, such as server.layout=TP8; several");
}

std::vector<net::Override> overrides(const Play& play) {
  std::vector<net::Override> all;
  for (const std::string& setting : play.settings) all.push_back(net::parse_override(setting));
  return all;
}

std::string scenario_text(const Play& play) {
  return net::with_overrides(runtime::read_text(play.scenario), play.scenario, overrides(play));
}

void write_pictures(const std::string& directory, const boost::json::object& result,
                    const std::vector<net::Picture>& pictures, const std::string& scenario) {
  runtime::make_directory(directory);
  net::ReportPage page(std::string(result.at("scenario").as_string()));
  for (const net::Picture& picture : pictures) {
    runtime::write_file(directory + "/" + picture.name + ".svg", picture.svg);
    page.picture(picture.svg);
  }
  page.heading("Result");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : net::result_rows(result)) rows.push_back({name, value});
  page.table({"", ""}, rows);
  page.heading("Scenario");
  page.preformatted(scenario);
  runtime::write_file(directory + "/report.html", page.html());
}

void add_run(CLI::App& app) {
  struct Run : Play {
    std::string json, plot;
    bool no_skip = false;
  };
  auto* command = app.add_subcommand("run", "Play a scenario on its modelled server");
  auto run = std::make_shared<Run>();
  add_play_options(*command, *run);
  command->add_option("--json", run->json, "Write the result to this file too");
  command->add_option("--plot", run->plot, "Directory for pictures (SVG) and report.html");
  command->add_flag("--no-skip", run->no_skip,
                    "Make every step by itself, also where many decide nothing: the same result, "
                    "later");
  command->final_callback([run] {
    const std::string text = scenario_text(*run);
    net::Scenario scenario = net::parse_scenario(text, run->scenario);
    if (!scenario.has_server)
      throw std::runtime_error(run->scenario +
                               ": has no [server]; `live` plays it on the [live] one");
    net::locate_traces(scenario, run->traces);
    const net::Trace trace = net::read_trace(scenario.trace.files, run->options);
    std::vector<net::Picture> pictures;
    const auto result = net::run_scenario(scenario, trace, runtime::shipped_config(),
                                          run->plot.empty() ? nullptr : &pictures, !run->no_skip);
    net::print_result(result, std::cout);
    if (!run->json.empty()) runtime::write_file(run->json, as_json(result));
    if (!run->plot.empty()) write_pictures(run->plot, result, pictures, text);
  });
}

void add_sweep(CLI::App& app) {
  struct Options : Play {
    std::vector<std::string> grid;
    std::string out;
    size_t jobs = std::max(1u, std::thread::hardware_concurrency());
  };
  auto* command = app.add_subcommand(
      "sweep", "Play a scenario at every point of a grid of settings, several at a time");
  auto sweep = std::make_shared<Options>();
  add_play_options(*command, *sweep);
  command
      ->add_option("--grid", sweep->grid,
                   "KEY=VALUE,VALUE,...: a setting and what it takes; several, in all combinations; "
                   "the scenario's own grid by default");
  command
      ->add_option("--out", sweep->out,
                   "Directory for results and report.html; what is there already is not played "
                   "again")
      ->required();
  command->add_option("--jobs", sweep->jobs, "Points that are played at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->final_callback([sweep] {
    net::SweepOptions options;
    options.scenario = sweep->scenario;
    options.directory = sweep->out;
    options.traces = sweep->traces;
    for (const std::string& axis : sweep->grid) options.grid.push_back(net::parse_grid_axis(axis));
    options.settings = overrides(*sweep);
    options.jobs = sweep->jobs;
    options.program = std::filesystem::read_symlink("/proc/self/exe");
    net::Sweep points(options);
    const bool is_good = points.run(std::cerr);
    std::cout << net::table_text(net::point_table(points.points()));
    if (const auto figures = points.figures(); !figures.empty()) {
      std::cout << "\n";
      runtime::write_figures(std::cout, figures);
    }
    runtime::write_file(sweep->out + "/report.html", net::sweep_report(points));
    if (!is_good) throw std::runtime_error("some points failed; see their logs in " + sweep->out);
  });
}

void add_figures(CLI::App& app) {
  auto* command = app.add_subcommand(
      "figures",
      "Print what the modelled devices say of published figures, with errors and provenance");
  struct Figures {
    std::vector<std::string> scenarios, settings;
    std::string config = runtime::shipped_config();
  };
  auto figures = std::make_shared<Figures>();
  command->add_option("SCENARIO", figures->scenarios,
                      "TOML files with an [experiment]; all that come with Sluice by default");
  command->add_option("--set", figures->settings,
                      "KEY=VALUE: a setting of each, such as experiment.device=gb200; several");
  command
      ->add_option("--config", figures->config,
                   "Directory with devices/, geometries/, figures/ and scenarios/")
      ->capture_default_str();
  command->final_callback([figures] {
    std::vector<net::Override> settings;
    for (const std::string& text : figures->settings) settings.push_back(net::parse_override(text));
    std::vector<std::string>& paths = figures->scenarios;
    if (paths.empty()) paths = runtime::shipped_experiments(figures->config);
    std::vector<runtime::ExperimentResult> results;
    for (const std::string& path : paths) {
      const auto text = net::with_overrides(runtime::read_text(path), path, settings);
      results.push_back(runtime::run_experiment(text, path, figures->config));
    }
    runtime::write_experiments(std::cout, results);
  });
}

void add_live(CLI::App& app) {
  struct Live : Play {
    std::string json, url, api_key;
    bool text = false;
    uint32_t block_tokens = 0;
  };
  auto* command = app.add_subcommand("live", "Play a scenario on a running server, over HTTP");
  auto live = std::make_shared<Live>();
  add_play_options(*command, *live);
  command->add_option("--url", live->url,
                      "The server, http://HOST:PORT, instead of the scenario's [live] url");
  command->add_option("--api-key", live->api_key, "Key it expects, instead of [live] api-key")
      ->envname("SLUICE_API_KEY");
  command->add_flag("--text", live->text, "Send words instead of token ids");
  command
      ->add_option("--scale-block", live->block_tokens,
                   "Tokens of a block, instead of [trace] block-tokens: fewer than recorded make "
                   "all prompts and answers shorter")
      ->check(CLI::Range(1u, 1u << 16));
  command->add_option("--json", live->json, "Write the result to this file too");
  command->final_callback([live] {
    net::Scenario scenario = net::parse_scenario(scenario_text(*live), live->scenario);
    net::locate_traces(scenario, live->traces);
    if (!live->url.empty()) scenario.live.url = live->url;
    if (!live->api_key.empty()) scenario.live.api_key = live->api_key;
    if (live->text) scenario.live.text = true;
    if (live->block_tokens != 0) scenario.trace.block_tokens = live->block_tokens;
    const net::Trace trace = net::read_trace(scenario.trace.files, live->options);
    std::ostream* const progress = ::isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr;
    const auto result = net::run_live(scenario, trace, progress);
    net::print_result(result, std::cout);
    if (!live->json.empty()) runtime::write_file(live->json, as_json(result));
  });
}

void add_calibrate(CLI::App& app) {
  struct Calibrate {
    std::string device, out;
    net::CalibrationOptions options;
  };
  auto* command = app.add_subcommand(
      "calibrate", "Measure a running Sluice server and fit a modelled device to its steps");
  auto calibrate = std::make_shared<Calibrate>();
  net::CalibrationOptions& options = calibrate->options;
  command->add_option("--url", options.server.url, "The server, http://HOST:PORT; otherwise idle")
      ->required();
  command->add_option("--api-key", options.server.api_key, "Key it expects")
      ->envname("SLUICE_API_KEY");
  command
      ->add_option("--device", calibrate->device,
                   "Device file to begin from: what is not fitted stays as it is there")
      ->required();
  command->add_option("--out", calibrate->out, "Device file to write")->required();
  command->add_option("--model", options.model,
                      "Directory of the model it serves, where it is not at the server's own path");
  command->add_option("--rounds", options.rounds, "How often each load is measured")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Of the prompts")->capture_default_str();
  command->final_callback([calibrate] {
    net::CalibrationOptions& settings = calibrate->options;
    settings.name = std::filesystem::path(calibrate->out).stem().string();
    std::ostream* const progress = ::isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr;
    const auto result = net::calibrate(runtime::read_device(calibrate->device), settings, progress);
    runtime::write_file(calibrate->out, net::calibration_file(result));
    std::cout << net::calibration_table(result);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Looks into recorded traffic and plays it again.", "sluice-replay"};
  app.require_subcommand(1);
  add_inspect(app);
  add_hits(app);
  add_run(app);
  add_sweep(app);
  add_figures(app);
  add_live(app);
  add_calibrate(app);
  return apps::run_program(app, "sluice-replay", argc, argv);
}
