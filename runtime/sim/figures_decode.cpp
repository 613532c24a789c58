// One decode step: a single request on the tuned stack, what each era of fusions brought, and a
// stack whose kernels do not overlap.
#include "runtime/sim/executor_calls.hpp"
#include "runtime/sim/figure_inputs.hpp"

namespace runtime {
namespace {

constexpr uint64_t kPosition = 1024;

StepShape decode(uint32_t requests, uint32_t width = 1) {
  StepShape shape;
  for (uint32_t i = 0; i < requests; ++i) shape.add_decode(kPosition, width);
  return shape;
}

double tokens_per_s(const StepModel& model) { return 1e6 / model.step_us(decode(1)); }

void add_eras(const FigureInputs& inputs, FigureGroup group) {
  const StepModel tuned = inputs.model(inputs.gb300, "TP8");
  StepOptions options = bring_up_options(unfused_launches(inputs.k3));
  const double start = tokens_per_s(inputs.model(inputs.gb300, "TP8", options));
  group
      .add("1 request, tuned", "tok/s", tokens_per_s(tuned),
           "gap_us [C] was rounded down with this one in view")
      .against(112.5)
      .within(0.15)
      .is(FigureKind::kCalibrated);
  group
      .add("1 request, before fusions", "tok/s", start,
           "a count: one kernel for each step of our executor's operations")
      .against(44.3)
      .is(FigureKind::kCount);
  group.add("tuned over before fusions", "ratio", tokens_per_s(tuned) / start)
      .against(112.5 / 44.3)
      .at_least(2)
      .is(FigureKind::kCount);
  const struct {
    const char* name;
    bool Fusions::*flag;
    const char* published;
  } eras[] = {{"launches and copies", &Fusions::launches, "+19.9"},
              {"kernels", &Fusions::kernels, "+10.3"},
              {"communication", &Fusions::communication, "+27.6"},
              {"overlap", &Fusions::overlap, "+10.4"}};
  double before = start;
  for (const auto& era : eras) {
    options.fusions.*era.flag = true;
    const double now = tokens_per_s(inputs.model(inputs.gb300, "TP8", options));
    group.add(std::string("era: ") + era.name, "tok/s more", now - before, "its sign alone")
        .against(era.published)
        .at_least(0);
    before = now;
  }
}

// Kernels one after another as their tables have them, and even routing.
void add_ledger(const FigureInputs& inputs, FigureGroup group) {
  DeviceFile plain = inputs.b300;
  plain.params.gap_us = 0;
  plain.params.expert_skew = 0;
  const StepModel summed = inputs.model(plain, "TP8");
  group
      .add("1 request, nothing overlaps", "ms", summed.step_us(decode(1)) / 1e3,
           "dummy weights; ai-dynamo/aiconfigurator, bring-up ledger of K3")
      .against(11.56);
  group
      .add("8 requests, nothing overlaps, even routing", "ms", summed.step_us(decode(8)) / 1e3,
           "same")
      .against(16.8);
  group
      .add("1 request, tuned", "ms", inputs.model(inputs.b300, "TP8").step_us(decode(1)) / 1e3,
           "sgl-project/sglang#37878, a later stack; gap_us would be 2.69 from it")
      .against(8.51);
}

}  // namespace

void add_decode_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures) {
  add_eras(inputs, {"(d) one request, 8 GB300 (the article)", figures});
  add_ledger(inputs, {"(d) decode steps, 8 B300", figures});
}

}  // namespace runtime
