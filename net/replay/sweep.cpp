#include "net/replay/sweep.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>

#include "memory/checksum.hpp"
#include "net/replay/process_queue.hpp"
#include "net/replay/scenario.hpp"
#include "runtime/canonical_json.hpp"
#include "runtime/output_files.hpp"
#include "runtime/text_file.hpp"

namespace net {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameMax = 120;

// Readable, and a file's name whatever the values are.
std::string name_of(const std::vector<Override>& settings) {
  std::string exact = "run";
  for (const Override& setting : settings)
    exact += (&setting == &settings.front() ? "-" : ",") + setting.key + "=" + setting.value;
  std::string name = exact.substr(0, kNameMax);
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '=' || c == ',';
    if (!is_plain) c = '_';
  }
  if (name == exact) return name;
  char digits[24];
  std::snprintf(digits, sizeof digits, "-%08x", static_cast<uint32_t>(memory::checksum(std::as_bytes(std::span(exact)))));
  return name + digits;
}

std::string absolute_traces(const Scenario& scenario, const std::string& directory) {
  Scenario located = scenario;
  locate_traces(located, directory);
  std::string list = "[";
  for (const std::string& file : located.trace.files) {
    list += (list.size() == 1 ? "" : ", ") +
            runtime::json_quoted(fs::absolute(file).lexically_normal().string());
  }
  return list + "]";
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == text.npos) return "it said nothing";
  const size_t before = text.find_last_of('\n', end);
  const size_t begin = before == text.npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

Sweep::Sweep(const SweepOptions& options) : options_(options) {
  scenario_ =
      with_overrides(runtime::read_text(options.scenario), options.scenario, options.settings);
  const Scenario whole = parse_scenario(scenario_, options.scenario);
  name_ = whole.name;
  figures_ = whole.figures;
  if (options_.grid.empty()) {
    for (const std::string& axis : whole.grid) options_.grid.push_back(parse_grid_axis(axis));
  }
  if (options_.grid.empty())
    throw std::invalid_argument("grid: " + options.scenario +
                                " has none; expected `grid` in it, or --grid");
  scenario_ = without_sweep(scenario_, options.scenario);
  if (name_.empty()) name_ = fs::path(options.scenario).stem().string();
  std::set<std::string> names;
  for (const std::vector<Override>& settings : grid_points(options_.grid)) {
    SweepPoint point;
    point.settings = settings;
    point.name = name_of(settings);
    if (!names.insert(point.name).second)
      throw std::invalid_argument("grid: two points would both be " + point.name);
    const std::string raw = with_overrides(scenario_, options.scenario, settings);
    const Scenario scenario = parse_scenario(raw, options.scenario);
    point.scenario = with_overrides(raw, options.scenario,
                                    {{"trace.files", absolute_traces(scenario, options.traces)}});
    points_.push_back(std::move(point));
  }
}

std::string Sweep::file(const SweepPoint& point, const char* ending) const {
  return (fs::path(options_.directory) / (point.name + ending)).string();
}

bool Sweep::is_done(const SweepPoint& point) const {
  return fs::exists(file(point, ".json")) && fs::exists(file(point, ".toml")) &&
         runtime::read_text(file(point, ".toml")) == point.scenario;
}

std::vector<runtime::DeviceFigure> Sweep::figures() const {
  return predicted_figures(name_, figures_, points_);
}

bool Sweep::run(std::ostream& log) {
  runtime::make_directory(options_.directory);
  std::vector<ProcessCommand> commands;
  std::vector<SweepPoint*> waiting;
  for (SweepPoint& point : points_) {
    if (is_done(point)) continue;
    // In this order: a result never stands beside a scenario that is not its own.
    fs::remove(file(point, ".json"));
    runtime::write_file(file(point, ".toml"), point.scenario);
    ProcessCommand command;
    command.words = {options_.program, "run", file(point, ".toml"), "--json",
                     file(point, ".part")};
    command.words.insert(command.words.end(), options_.arguments.begin(),
                         options_.arguments.end());
    command.log = file(point, ".log");
    commands.push_back(std::move(command));
    waiting.push_back(&point);
  }
  log << points_.size() << " points, " << points_.size() - waiting.size()
      << " of them are there already\n";
  size_t ended = 0, failed = 0;
  run_processes(commands, options_.jobs, [&](size_t index, bool is_good) {
    const SweepPoint& point = *waiting[index];
    ++ended;
    if (is_good) {
      fs::rename(file(point, ".part"), file(point, ".json"));
      fs::remove(file(point, ".log"));
      log << ended << " of " << waiting.size() << ": " << point.name << "\n" << std::flush;
    } else {
      ++failed;
      log << ended << " of " << waiting.size() << ": " << point.name
          << " failed: " << last_line(runtime::read_text(file(point, ".log"))) << "\n"
          << std::flush;
    }
  });
  for (SweepPoint& point : points_) {
    if (is_done(point))
      point.result = boost::json::parse(runtime::read_text(file(point, ".json"))).as_object();
  }
  return failed == 0;
}

}  // namespace net
