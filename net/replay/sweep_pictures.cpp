#include "net/replay/sweep_pictures.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "net/replay/report_page.hpp"
#include "runtime/plot/chart.hpp"

namespace net {
namespace {

namespace json = boost::json;

using runtime::Axis;
using runtime::Chart;
using runtime::Mark;
using runtime::Series;
using runtime::SeriesKind;
using Groups = std::vector<SweepGroup>;
using Value = std::function<double(const json::object&)>;

// What a grid varies to load a server, in the order of preference.
constexpr std::string_view kLoads[] = {"pace.concurrency", "server.max-running", "pace.time-scale",
                                       "pace.repeat"};
constexpr std::string_view kMemory[] = {"server.kv-tokens", "server.host-gb",
                                        "server.memory-fraction"};

bool varies(const Groups& groups, std::string_view key) {
  return !groups.empty() && !groups.front().value(key).empty();
}

struct Look {
  std::function<double(const SweepGroup&)> x;
  Value y;
  std::vector<std::string_view> along;  // settings that vary within a line
  std::string_view note = {};           // a setting that is written at each mark
  bool sorted = true;                   // by x; else in the grid's order
};

std::function<double(const SweepGroup&)> mean_of(const Value& value) {
  return [value](const SweepGroup& group) { return group.over(value).mean; };
}

// A line for each combination of the other settings.
void add_lines(Chart& chart, const Groups& groups, const Look& look) {
  std::vector<Series> all;
  for (const SweepGroup& group : groups) {
    if (group.empty()) continue;
    const std::string name = group.name(look.along);
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Series& series) { return series.name == name; });
    if (found == all.end()) found = all.insert(all.end(), {name, SeriesKind::kLine, {}});
    const Spread y = group.over(look.y);
    Mark mark = Mark::range(look.x(group), y.mean, y.low, y.high);
    if (!look.note.empty()) mark.note = group.value(look.note);
    found->marks.push_back(std::move(mark));
  }
  for (Series& series : all) {
    if (look.sorted) {
      std::stable_sort(series.marks.begin(), series.marks.end(),
                       [](const Mark& a, const Mark& b) { return a.x < b.x; });
    }
    chart.add(std::move(series));
  }
}

Axis from_zero(std::string label) {
  Axis axis{std::move(label)};
  axis.low = 0;
  return axis;
}

double per_device(const json::object& result) {
  return number_in(result, "output_tokens_per_s_per_device");
}

double per_user(const json::object& result) {
  const double between = number_in(result, "itl_s.mean");
  return between > 0 ? 1 / between : 0;
}

Chart frontier(const Groups& groups) {
  Chart chart("Throughput of a device against speed for a user",
              from_zero("tokens per second and user (1 / mean time between tokens)"),
              from_zero("tokens per second and device"));
  Look look{mean_of(per_user), per_device, {}, {}, false};
  const auto load = std::find_if(std::begin(kLoads), std::end(kLoads),
                                 [&](std::string_view key) { return varies(groups, key); });
  if (load != std::end(kLoads)) {
    look.along = {*load};
    look.note = *load;
  }
  add_lines(chart, groups, look);
  return chart;
}

Chart throughput(const Groups& groups) {
  Axis sessions{"sessions open at once"};
  sessions.log = true;
  Chart chart("Throughput against concurrency", sessions, from_zero("output tokens per second"));
  constexpr std::string_view kKey = "pace.concurrency";
  add_lines(chart, groups,
            {[](const SweepGroup& group) { return std::atof(group.value(kKey).c_str()); },
             [](const json::object& r) { return number_in(r, "output_tokens_per_s"); },
             {kKey}});
  return chart;
}

Chart hit_rate(const Groups& groups) {
  Axis memory{"arena and host memory of a rank, as tokens of KV"};
  memory.log = true;
  Axis share = from_zero("prompt tokens not computed again (%)");
  share.high = 100;
  Chart chart("Hit rate against memory", memory, share);
  add_lines(chart, groups,
            {mean_of(cache_tokens),
             [](const json::object& r) { return 100 * number_in(r, "state_hit_rate"); },
             {std::begin(kMemory), std::end(kMemory)}});
  return chart;
}

}  // namespace

std::vector<Picture> sweep_pictures(const Groups& groups) {
  std::vector<Picture> out;
  out.push_back({"frontier", frontier(groups).svg()});
  if (varies(groups, "pace.concurrency"))
    out.push_back({"throughput", throughput(groups).svg()});
  if (std::any_of(std::begin(kMemory), std::end(kMemory),
                  [&](std::string_view key) { return varies(groups, key); })) {
    out.push_back({"hit-rate", hit_rate(groups).svg()});
  }
  return out;
}

std::string sweep_report(const Sweep& sweep) {
  ReportPage page(sweep.name());
  const Groups groups = groups_of(sweep.points());
  for (const Picture& picture : sweep_pictures(groups)) page.picture(picture.svg);
  if (groups.size() < sweep.points().size()) {
    page.heading("Over seeds: mean (least..most)");
    const SweepTable table = group_table(groups);
    page.table(table.head, table.rows);
  }
  page.heading("Points");
  const SweepTable table = point_table(sweep.points());
  page.table(table.head, table.rows);
  page.heading("Scenario");
  page.preformatted(sweep.scenario());
  return page.html();
}

}  // namespace net
