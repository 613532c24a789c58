#include "net/replay/scenario_run.hpp"

#include <boost/json/serialize.hpp>

#include <cstdio>
#include <ostream>

#include "net/replay/modelled_setup.hpp"
#include "runtime/sim/step_model_clock.hpp"

namespace net {

namespace json = boost::json;

namespace {

json::object server_facts(const Scenario& scenario, const ModelledSetup& setup) {
  const memory::CacheSetup& cache = setup.server.cache;
  const runtime::RankMemory rank = setup.model->memory();
  return {{"device", setup.device.name},
          {"device_version", setup.device.version},
          {"model", scenario.server.model},
          {"layout", runtime::name_of(setup.model->layout())},
          {"ranks", setup.model->layout().ranks()},
          {"weight_gb", rounded(rank.weight_bytes * 1e-9)},
          {"arena_gb", rounded(static_cast<double>(cache.arena.arena_bytes) * 1e-9)},
          {"state_mb", rounded(static_cast<double>(cache.arena.state_bytes) * 1e-6)},
          {"page_tokens", cache.tree.page_tokens},
          {"page_kb", rounded(static_cast<double>(cache.arena.page_bytes) * 1e-3)},
          {"host_gb", rounded(static_cast<double>(cache.host_bytes) * 1e-9)},
          {"chunk_tokens", setup.server.scheduler.chunk_tokens},
          {"max_running", setup.server.scheduler.max_running}};
}

std::string shown(const json::value& value) {
  char text[32];
  if (value.is_double()) {
    std::snprintf(text, sizeof text, "%.4g", value.get_double());
    return text;
  }
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

void print_row(const std::string& name, const std::string& value, std::ostream& out) {
  constexpr size_t kColumn = 26;
  out << "  " << name << std::string(name.size() < kColumn ? kColumn - name.size() : 1, ' ') << value
      << "\n";
}

}  // namespace

json::object run_scenario(const Scenario& scenario, const Trace& trace,
                          const std::string& config_directory, std::vector<Picture>* pictures,
                          bool skip) {
  const ModelledSetup setup = make_modelled_setup(scenario.server, config_directory);
  PromptOptions options;
  options.block_tokens = scenario.trace.block_tokens;
  options.seed = scenario.seed;
  const PromptSource prompts(trace, options);
  runtime::StepModelClock clock(*setup.model, scenario.server.page_tokens);
  const std::vector<uint32_t> sessions = select_sessions(trace, scenario.trace, scenario.seed);
  ModelledReplay replay({setup.server, scenario.pace, scenario.faults, scenario.slo, skip},
                        trace, sessions, prompts, clock);
  replay.run();
  if (pictures != nullptr) *pictures = replay_pictures(replay, *setup.model);
  json::object out;
  out["scenario"] = scenario.name;
  out["seed"] = scenario.seed;
  out["sessions"] = sessions.size();
  out["server"] = server_facts(scenario, setup);
  for (auto& [key, value] : replay.result()) out[key] = value;
  if (setup.speculation) {
    out["accept_length"] = rounded(setup.speculation->accept_length());
    out["verify_width"] = rounded(setup.speculation->verify_width());
  }
  const double ranks = setup.model->layout().ranks();
  out["output_tokens_per_s_per_device"] =
      rounded(out["output_tokens_per_s"].to_number<double>() / ranks);
  return out;
}

std::vector<std::pair<std::string, std::string>> result_rows(const json::object& result) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [key, value] : result) {
    std::string text;
    if (const json::object* group = value.if_object()) {
      for (const auto& [part, of_part] : *group) {
        text += text.empty() ? "" : ", ";
        text += std::string(part) + " " + shown(of_part);
      }
    } else {
      text = shown(value);
    }
    rows.emplace_back(key, text);
  }
  return rows;
}

void print_result(const json::object& result, std::ostream& out) {
  for (const auto& [name, value] : result_rows(result)) print_row(name, value, out);
}

}  // namespace net
