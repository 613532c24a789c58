#include "net/replay/sweep_summary.hpp"

#include <algorithm>
#include <cstdio>

namespace net {
namespace {

namespace json = boost::json;

struct Column {
  const char* head;
  double (*value)(const json::object&);
};

// What points are compared by.
constexpr Column kColumns[] = {
    {"requests", [](const json::object& r) { return number_in(r, "finished"); }},
    {"tok/s", [](const json::object& r) { return number_in(r, "output_tokens_per_s"); }},
    {"tok/s/device",
     [](const json::object& r) { return number_in(r, "output_tokens_per_s_per_device"); }},
    {"TTFT p50 s", [](const json::object& r) { return number_in(r, "ttft_s.p50"); }},
    {"TTFT p99 s", [](const json::object& r) { return number_in(r, "ttft_s.p99"); }},
    {"ITL mean ms", [](const json::object& r) { return 1e3 * number_in(r, "itl_s.mean"); }},
    {"KV hit %", [](const json::object& r) { return 100 * number_in(r, "kv_hit_rate"); }},
    {"usable hit %", [](const json::object& r) { return 100 * number_in(r, "state_hit_rate"); }},
};

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string shown(const Spread& spread) {
  if (spread.low == spread.high) return shown(spread.mean);
  return shown(spread.mean) + " (" + shown(spread.low) + ".." + shown(spread.high) + ")";
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

Spread SweepGroup::over(const std::function<double(const json::object&)>& value) const {
  Spread spread;
  size_t count = 0;
  for (const SweepPoint* point : points) {
    if (point->result.empty()) continue;
    const double one = value(point->result);
    spread.low = count == 0 ? one : std::min(spread.low, one);
    spread.high = count == 0 ? one : std::max(spread.high, one);
    spread.mean += one;
    ++count;
  }
  if (count > 0) spread.mean /= static_cast<double>(count);
  return spread;
}

bool SweepGroup::empty() const {
  return std::all_of(points.begin(), points.end(),
                     [](const SweepPoint* point) { return point->result.empty(); });
}

std::string SweepGroup::value(std::string_view key) const {
  for (const Override& setting : settings)
    if (setting.key == key) return setting.value;
  return {};
}

std::string SweepGroup::name(const std::vector<std::string_view>& without) const {
  std::string name;
  for (const Override& setting : settings) {
    if (std::find(without.begin(), without.end(), setting.key) != without.end()) continue;
    name += (name.empty() ? "" : ", ") + std::string(last_part(setting.key)) + " " + setting.value;
  }
  return name;
}

std::vector<SweepGroup> groups_of(const std::vector<SweepPoint>& sweep) {
  std::vector<SweepGroup> groups;
  for (const SweepPoint& point : sweep) {
    std::vector<Override> settings = point.settings;
    std::erase_if(settings, [](const Override& setting) { return setting.key == "seed"; });
    const auto same = [&](const SweepGroup& group) { return group.settings == settings; };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) found = groups.insert(groups.end(), {settings, {}});
    found->points.push_back(&point);
  }
  return groups;
}

double number_in(const json::object& result, std::string_view path) {
  const size_t dot = path.find('.');
  const json::value& value = result.at(path.substr(0, dot));
  if (dot != path.npos) return number_in(value.as_object(), path.substr(dot + 1));
  return value.to_number<double>();
}

double cache_tokens(const json::object& result) {
  const double gigabytes = number_in(result, "server.arena_gb") + number_in(result, "server.host_gb");
  return gigabytes * 1e6 / number_in(result, "server.page_kb") *
         number_in(result, "server.page_tokens");
}

SweepTable point_table(const std::vector<SweepPoint>& sweep) {
  SweepTable table;
  if (sweep.empty()) return table;
  for (const Override& setting : sweep.front().settings) table.head.push_back(setting.key);
  for (const Column& column : kColumns) table.head.emplace_back(column.head);
  for (const SweepPoint& point : sweep) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Override& setting : point.settings) row.push_back(setting.value);
    for (const Column& column : kColumns)
      row.push_back(point.result.empty() ? "failed" : shown(column.value(point.result)));
  }
  return table;
}

SweepTable group_table(const std::vector<SweepGroup>& groups) {
  SweepTable table;
  if (groups.empty()) return table;
  for (const Override& setting : groups.front().settings) table.head.push_back(setting.key);
  table.head.emplace_back("seeds");
  for (const Column& column : kColumns) table.head.emplace_back(column.head);
  for (const SweepGroup& group : groups) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Override& setting : group.settings) row.push_back(setting.value);
    row.push_back(std::to_string(group.points.size()));
    for (const Column& column : kColumns)
      row.push_back(group.empty() ? "failed" : shown(group.over(column.value)));
  }
  return table;
}

std::string table_text(const SweepTable& table) {
  std::vector<size_t> widths;
  for (const std::string& cell : table.head) widths.push_back(cell.size());
  for (const auto& row : table.rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  const auto add = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i)
      out += (i == 0 ? "" : "  ") + std::string(widths[i] - row[i].size(), ' ') + row[i];
    out += "\n";
  };
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return out;
}

}  // namespace net
