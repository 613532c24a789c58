#include "net/replay/replay_pictures.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/plot/chart.hpp"

namespace net {
namespace {

using runtime::Axis;
using runtime::Chart;
using runtime::Mark;
using runtime::Series;
using runtime::SeriesKind;
using Points = std::vector<TimelinePoint>;

double gigabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

// An axis of time in the unit that suits its length.
struct TimeAxis {
  Axis axis;
  double unit_ns = 1e9;
  explicit TimeAxis(const Points& points) {
    const double seconds = points.empty() ? 0 : static_cast<double>(points.back().end_ns) * 1e-9;
    const char* unit = "s";
    if (seconds > 3 * 3600) {
      unit = "h", unit_ns = 3600e9;
    } else if (seconds > 10 * 60) {
      unit = "min", unit_ns = 60e9;
    }
    axis.label = std::string("time (") + unit + ")";
    axis.low = 0;
  }
  double at(uint64_t ns) const { return static_cast<double>(ns) / unit_ns; }
};

Axis from_zero(std::string label) {
  Axis axis{std::move(label)};
  axis.low = 0;
  return axis;
}

// A value of each moment as a line.
template <class Value>
Series line(const std::string& name, const Points& points, const TimeAxis& time, Value value) {
  Series series{name, SeriesKind::kLine, {}};
  for (const TimelinePoint& point : points)
    series.marks.push_back(Mark::at(time.at(point.end_ns), value(point)));
  return series;
}

// A value of each interval: it holds from the interval's begin to its end.
template <class Value>
Series rate(const std::string& name, const Points& points, const TimeAxis& time, Value value) {
  Series series{name, SeriesKind::kSteps, {}};
  for (const TimelinePoint& point : points) {
    const double seconds = static_cast<double>(point.end_ns - point.begin_ns) * 1e-9;
    series.marks.push_back(
        Mark::at(time.at(point.begin_ns), static_cast<double>(value(point)) / seconds));
  }
  if (!points.empty())
    series.marks.push_back(Mark::at(time.at(points.back().end_ns), series.marks.back().y));
  return series;
}

// The arena as it lies in memory: states grow from the bottom, KV from the top.
Chart arena_chart(const Points& points) {
  const TimeAxis time(points);
  Axis arena = from_zero("arena of a rank (GB)");
  Series running_states{"states, running", SeriesKind::kBand, {}};
  Series cached_states{"states, cached", SeriesKind::kBand, {}};
  Series cached_kv{"KV, cached", SeriesKind::kBand, {}};
  Series running_kv{"KV, running", SeriesKind::kBand, {}};
  for (const TimelinePoint& point : points) {
    const ReplayGauges& now = point.at_end;
    const double x = time.at(point.end_ns);
    const double first = gigabytes(now.running_states);
    const double states = gigabytes(now.running_states + now.cached_states);
    const double free = gigabytes(now.running_states + now.cached_states + now.free);
    const double cached = gigabytes(now.running_states + now.cached_states + now.free +
                                    now.cached_kv);
    const double all = cached + gigabytes(now.running_kv);
    arena.high = all;
    running_states.marks.push_back(Mark::band(x, 0, first));
    cached_states.marks.push_back(Mark::band(x, first, states));
    cached_kv.marks.push_back(Mark::band(x, free, cached));
    running_kv.marks.push_back(Mark::band(x, cached, all));
  }
  Chart chart("The arena: states from the bottom, KV from the top, free between them", time.axis,
              arena);
  for (Series* series : {&running_states, &cached_states, &cached_kv, &running_kv})
    chart.add(std::move(*series));
  return chart;
}

Chart request_chart(const Points& points) {
  const TimeAxis time(points);
  Chart chart("Requests that run and that wait", time.axis, from_zero("requests"));
  chart.add(line("running", points, time,
                 [](const TimelinePoint& point) { return double{1} * point.at_end.running; }));
  chart.add(line("queued", points, time,
                 [](const TimelinePoint& point) { return double{1} * point.at_end.queued; }));
  return chart;
}

Chart token_chart(const Points& points) {
  const TimeAxis time(points);
  Axis tokens{"tokens per second"};
  tokens.log = true;
  Chart chart("Tokens computed and generated", time.axis, tokens);
  chart.add(rate("prompt tokens computed", points, time,
                 [](const TimelinePoint& point) { return point.prompt_tokens; }));
  chart.add(rate("output tokens", points, time,
                 [](const TimelinePoint& point) { return point.output_tokens; }));
  return chart;
}

Chart host_chart(const Points& points) {
  const TimeAxis time(points);
  Chart chart("Host memory of a rank", time.axis, from_zero("copies held (GB)"));
  chart.add(line("", points, time,
                 [](const TimelinePoint& point) { return gigabytes(point.at_end.host); }));
  return chart;
}

Chart distribution_chart(const ReplayMetrics& metrics) {
  Axis seconds{"time (s)"}, share = from_zero("share of all at or below (%)");
  seconds.log = true;
  share.high = 100;
  Chart chart("Distributions of times", seconds, share);
  const auto add = [&](const char* name, const TimeDistribution& times) {
    Series series{name, SeriesKind::kSteps, {}};
    for (const auto& [ns, part] : times.curve())
      series.marks.push_back(Mark::at(static_cast<double>(ns) * 1e-9, 100 * part));
    chart.add(std::move(series));
  };
  add("time to first token", metrics.ttft());
  add("between tokens", metrics.itl());
  add("whole answer", metrics.latency());
  return chart;
}

std::string shown(const char* format, double value, uint32_t count) {
  char text[64];
  std::snprintf(text, sizeof text, format, value, count);
  return text;
}

// Each cost begins where the one before ended.
Chart step_chart(const std::string& title, const runtime::StepBreakdown& step) {
  Axis costs{"cost"};
  Series bars{"", SeriesKind::kBar, {}};
  double from = 0;
  for (size_t i = 0; i < runtime::kCostClasses; ++i) {
    const auto& part = step.parts[i];
    if (part.launches == 0 && part.us == 0) continue;
    costs.names.emplace_back(runtime::name_of(static_cast<runtime::CostClass>(i)));
    const double to = from + part.us / 1000;
    bars.marks.push_back(Mark::bar(costs.names.size() - 1, from, to,
                                   shown("%.3g ms, %u launches", part.us / 1000, part.launches)));
    from = to;
  }
  costs.names.emplace_back("step");
  bars.marks.push_back(Mark::bar(costs.names.size() - 1, 0, from,
                                 shown("%.3g ms, %u launches", from, step.launches())));
  Chart chart(title, from_zero("time (ms)"), costs);
  chart.add(std::move(bars));
  return chart;
}

std::string decode_title(const runtime::StepShape& shape) {
  return "Decode step (median): " + std::to_string(shape.decode_rows) + " sequences, " +
         std::to_string(shape.decode_context / std::max(shape.decode_rows, 1u)) +
         " cached tokens each";
}

std::string prefill_title(const runtime::StepShape& shape) {
  return "Prefill step (median): " + std::to_string(shape.prefill_tokens) + " tokens of " +
         std::to_string(shape.prefill_rows) + " prompts beside " +
         std::to_string(shape.decode_rows) + " sequences";
}

}  // namespace

std::vector<Picture> replay_pictures(const ModelledReplay& replay,
                                     const runtime::StepModel& model) {
  const Points& points = replay.timeline().points();
  std::vector<Picture> out;
  const auto add = [&](const char* name, const Chart& chart) {
    out.push_back({name, chart.svg()});
  };
  add("arena", arena_chart(points));
  if (replay.server().cache().host().enabled()) add("host", host_chart(points));
  add("requests", request_chart(points));
  add("tokens", token_chart(points));
  add("times", distribution_chart(replay.metrics()));
  const runtime::StepShape decode = replay.typical_steps().decode();
  const runtime::StepShape prefill = replay.typical_steps().prefill();
  if (!decode.empty()) add("decode-step", step_chart(decode_title(decode), model.breakdown(decode)));
  if (!prefill.empty())
    add("prefill-step", step_chart(prefill_title(prefill), model.breakdown(prefill)));
  return out;
}

}  // namespace net
