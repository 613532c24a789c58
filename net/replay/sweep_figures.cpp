#include "net/replay/sweep_figures.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "net/replay/sweep.hpp"
#include "runtime/sim/published_figure.hpp"

namespace net {
namespace {

std::vector<Override> settings(runtime::TomlFields& in, std::string_view key) {
  std::vector<std::string> texts;
  in.texts(key, texts);
  std::vector<Override> all;
  for (const std::string& text : texts) all.push_back(parse_override(text));
  return all;
}

bool has(const SweepPoint& point, const Override& setting) {
  return std::find(point.settings.begin(), point.settings.end(), setting) != point.settings.end();
}
bool has_all(const SweepPoint& point, const std::vector<Override>& settings) {
  return std::all_of(settings.begin(), settings.end(),
                     [&](const Override& setting) { return has(point, setting); });
}

std::optional<double> number_of(const SweepPoint& point, const std::string& path) {
  const boost::json::object* at = &point.result;
  size_t begin = 0;
  for (;;) {
    const size_t dot = path.find('.', begin);
    const auto found = at->find(path.substr(begin, dot == path.npos ? dot : dot - begin));
    if (found == at->end()) return std::nullopt;
    if (dot == path.npos) {
      if (!found->value().is_number()) return std::nullopt;
      return found->value().to_number<double>();
    }
    if (!found->value().is_object()) return std::nullopt;
    at = &found->value().as_object();
    begin = dot + 1;
  }
}

std::vector<const SweepPoint*> points_at(const std::vector<SweepPoint>& points,
                                         const std::vector<Override>& settings,
                                         const std::string& result) {
  std::vector<const SweepPoint*> found;
  for (const SweepPoint& point : points) {
    if (has_all(point, settings) && number_of(point, result)) found.push_back(&point);
  }
  return found;
}

// Equal in everything that neither list names.
bool is_twin(const SweepPoint& point, const SweepPoint& other, const SweepFigure& figure) {
  const auto is_named = [&](const std::string& key) {
    const auto names = [&](const Override& setting) { return setting.key == key; };
    return std::any_of(figure.at.begin(), figure.at.end(), names) ||
           std::any_of(figure.over.begin(), figure.over.end(), names);
  };
  return std::all_of(point.settings.begin(), point.settings.end(), [&](const Override& setting) {
    return is_named(setting.key) || has(other, setting);
  });
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string spread(const std::vector<double>& values) {
  if (values.size() < 2) return "1 point";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  char text[96];
  std::snprintf(text, sizeof text, "%zu points, %.4g to %.4g", values.size(), *least, *most);
  return text;
}

}  // namespace

SweepFigure read_sweep_figure(runtime::TomlFields& in) {
  SweepFigure out;
  out.figure = runtime::read_published(in);
  in.text("unit", out.figure.unit);
  in.require("result", "the name of a number in the results");
  in.text("result", out.result);
  in.require("at", "settings of the grid as KEY=VALUE");
  out.at = settings(in, "at");
  out.over = settings(in, "over");
  if (out.figure.unit.empty()) out.figure.unit = out.over.empty() ? out.result : "ratio";
  return out;
}

std::vector<runtime::DeviceFigure> predicted_figures(const std::string& group,
                                                     const std::vector<SweepFigure>& figures,
                                                     const std::vector<SweepPoint>& points) {
  std::vector<runtime::DeviceFigure> out;
  for (const SweepFigure& asked : figures) {
    const auto above = points_at(points, asked.at, asked.result);
    const auto below = points_at(points, asked.over, asked.result);
    std::vector<double> values, tops, bottoms;
    for (const SweepPoint* point : above) {
      const double top = *number_of(*point, asked.result);
      tops.push_back(top);
      if (asked.over.empty()) values.push_back(top);
    }
    if (!asked.over.empty()) {
      for (const SweepPoint* point : below) {
        const double bottom = *number_of(*point, asked.result);
        bottoms.push_back(bottom);
        for (const SweepPoint* twin : above) {
          if (is_twin(*twin, *point, asked))
            values.push_back(*number_of(*twin, asked.result) / bottom);
        }
      }
      if (bottoms.empty() || mean(bottoms) == 0) continue;
    }
    if (tops.empty()) continue;
    runtime::DeviceFigure figure = asked.figure;
    figure.group = group;
    figure.predicted = asked.over.empty() ? mean(tops) : mean(tops) / mean(bottoms);
    figure.source = spread(values) + (figure.source.empty() ? "" : "; " + figure.source);
    out.push_back(std::move(figure));
  }
  return out;
}

}  // namespace net
