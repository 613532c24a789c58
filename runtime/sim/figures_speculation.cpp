// Block drafts on 8 GB300: what a wider step costs, and what trimming them brings under load.
#include <algorithm>

#include "runtime/sim/figure_inputs.hpp"
#include "runtime/sim/trim_panel.hpp"

namespace runtime {
namespace {

constexpr uint64_t kPosition = 1024;
// Confidence is bimodal (sgl-project/sglang#30204); [C] set from the math panel's gain.
constexpr double kConfidenceSpread = 0.5;

TrimGain gain(const StepModel& model, double length, uint32_t requests, bool stale) {
  TrimPanel panel;
  panel.requests = requests;
  panel.context = kPosition;
  panel.acceptance = {acceptance_mean(length), kConfidenceSpread};
  panel.steps = requests >= 64 ? 100 : 4000 / requests;
  panel.stale_budget = stale;
  return trim_gain(model, panel);
}

void add_panel(const StepModel& model, FigureGroup& group, const std::string& name, double length,
               double published, double low, double high, FigureKind kind) {
  const TrimGain loaded = gain(model, length, 256, true);
  group
      .add(name + ", 256 requests, gain of trimming", "part", loaded.gain,
           "accept length of verify-all given")
      .against(published)
      .at_least(low)
      .at_most(high)
      .is(kind);
  group.add(name + ", tokens a step, all verified", "tokens", loaded.full_length, "given")
      .against(length)
      .is(FigureKind::kCount);
  group.add(name + ", tokens a step, trimmed", "tokens", loaded.trimmed_length, "falls")
      .against(length == 5.0 ? 4.3 : 2.2)
      .at_most(loaded.full_length)
      .is(kind);
  for (const uint32_t few : {1u, 4u, 8u}) {
    DeviceFigure& figure =
        group
            .add(name + ", " + std::to_string(few) + " requests, gain of trimming", "part",
                 gain(model, length, few, true).gain, "a budget one step old")
            .against("about 0");
    if (few == 4) figure.at_least(-0.1).at_most(0.1);
  }
  double least = 1;
  for (const uint32_t requests : {1u, 2u, 4u, 8u}) {
    least = std::min(least, gain(model, length, requests, false).gain);
  }
  group
      .add(name + ", 1 to 8 requests, waiting for confidences", "part", least,
           "a budget from this step's confidences")
      .against("the follow-up")
      .at_least(-0.02);
}

}  // namespace

void add_speculation_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures) {
  const StepModel tp8 = inputs.model(inputs.gb300, "TP8");
  FigureGroup group("(e) block drafts, 8 GB300 (the article)", figures);
  StepShape one, eight;
  one.add_decode(kPosition);
  eight.add_decode(kPosition, 8);
  group
      .add("1 request, 8 tokens over 1", "ratio", tp8.step_us(eight) / tp8.step_us(one),
           "expert_new_per_draft [C]; B300 about 1.28; speed is accept length over this")
      .against(1.28)
      .at_least(1.15)
      .at_most(1.5)
      .is(FigureKind::kCalibrated);
  const double speed = 5.0 * 1e6 / (tp8.step_us(eight) + tp8.draft_us(eight));
  group
      .add("1 request, 5 tokens a step", "tok/s", speed,
           "published without its accept length: not tested")
      .against(423);
  add_panel(tp8, group, "chat", 2.7, 0.68, 0.35, 0.75, FigureKind::kHeldOut);
  add_panel(tp8, group, "math", 5.0, 0.24, 0.15, 0.32, FigureKind::kCalibrated);
}

}  // namespace runtime
