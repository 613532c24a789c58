// Published figures of a sweep: a number of the results at some of its points, alone or over that
// at others, beside what was published and what would be accepted.
#pragma once

#include <string>
#include <vector>

#include "net/replay/scenario_overrides.hpp"
#include "runtime/sim/device_figure.hpp"
#include "runtime/toml_fields.hpp"

namespace net {

struct SweepPoint;

struct SweepFigure {
  runtime::DeviceFigure figure;   // without a prediction
  std::string result;             // "output_tokens_per_s", "itl_s.p50"
  std::vector<Override> at, over;  // settings of the points; over: empty, or what is divided by
};

// A [[figure]] of a scenario: `result`, `at` and `over` as KEY=VALUE, and what read_published()
// takes.
SweepFigure read_sweep_figure(runtime::TomlFields& in);

// The mean over all points that have the settings (of seeds, mostly), and how far they lie apart
// with what the figure is divided by at the same other settings. Figures of points that were not
// played are left out.
std::vector<runtime::DeviceFigure> predicted_figures(const std::string& group,
                                                     const std::vector<SweepFigure>& figures,
                                                     const std::vector<SweepPoint>& points);

}  // namespace net
