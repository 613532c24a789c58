// One decode step: of few requests, with some of the fusions, with drafts to verify.
#include "runtime/sim/executor_calls.hpp"
#include "runtime/sim/experiment.hpp"

namespace runtime {
namespace {

constexpr struct {
  std::string_view name;
  bool Fusions::*flag;
} kFusions[] = {{"launches", &Fusions::launches},
                {"kernels", &Fusions::kernels},
                {"communication", &Fusions::communication},
                {"overlap", &Fusions::overlap}};

struct Step {
  uint32_t requests = 1, tokens = 1;  // tokens: of a request
  Fusions fusions;
};

class StepExperiment final : public ExperimentKind {
 public:
  StepExperiment(const ExperimentBase& base, TomlFields& in) : base_(base) {
    in.text("layout", layout_);
    in.whole("context", context_, 1, 1u << 30);
    in.one_of("kv", kv_, {"bf16", "fp8", "f32"});
  }

  Prediction predict(TomlFields& in) override {
    ExperimentBase base = base_;
    in.number("gap-us", base.device.params.gap_us, 0, 1e6);
    in.number("expert-skew", base.device.params.expert_skew, 0, 10);
    Step step;
    in.whole("requests", step.requests, 1, 1u << 16);
    in.whole("tokens", step.tokens, 1, 1024);
    read_fusions(in, "fusions", step.fusions);
    Step other = step;  // what is compared with
    in.whole("over-tokens", other.tokens, 1, 1024);
    const bool compares = read_fusions(in, "over-fusions", other.fusions) || in.has("over-tokens");
    enum { kRate, kMs, kRatio, kMore } as = kRate;
    in.one_of("as", as, {"tok/s", "ms", "ratio", "more"});
    double length = 0;  // tokens accepted of a step that verifies; its drafts are made too
    in.number("accept-length", length, 0, 1024);
    if (compares != (as == kRatio || as == kMore))
      in.fail("as", "must be \"ratio\" or \"more\" with over-fusions or over-tokens, only then");
    const double us = step_us(base, step, length > 0);
    if (as == kMs) return {us / 1e3, "ms", ""};
    if (length > 0) return {length * 1e6 / us, "tok/s", ""};
    if (as == kRate) return {1e6 / us, "tok/s", ""};
    const double other_us = step_us(base, other, false);
    if (as == kMore) return {1e6 / us - 1e6 / other_us, "tok/s more", ""};
    // Of rates where fusions differ, of times where widths do.
    return {in.has("over-tokens") ? us / other_us : other_us / us, "ratio", ""};
  }

 private:
  // False: it is not there, and all of them stay.
  static bool read_fusions(TomlFields& in, std::string_view key, Fusions& fusions) {
    std::vector<std::string> names;
    in.texts(key, names);
    if (!in.has(key)) return false;
    fusions = {false, false, false, false};
    for (const std::string& name : names) {
      bool known = false;
      for (const auto& fusion : kFusions) {
        if (fusion.name == name) fusions.*fusion.flag = known = true;
      }
      if (!known)
        in.fail(key, "has \"" + name +
                         "\"; expected launches, kernels, communication and overlap");
    }
    return true;
  }

  double step_us(const ExperimentBase& base, const Step& step, bool drafts) const {
    StepOptions options;
    options.kv = kv_;
    options.fusions = step.fusions;
    options.extra_launches = unfused_launches(base.geometry);
    const StepModel model = base.model(layout_, options);
    StepShape shape;
    for (uint32_t i = 0; i < step.requests; ++i) shape.add_decode(context_, step.tokens);
    return model.step_us(shape) + (drafts ? model.draft_us(shape) : 0);
  }

  const ExperimentBase& base_;
  std::string layout_ = "TP8";
  uint64_t context_ = 1024;
  KvType kv_ = KvType::kBf16;
};

}  // namespace

std::unique_ptr<ExperimentKind> step_experiment(const ExperimentBase& base, TomlFields& in) {
  return std::make_unique<StepExperiment>(base, in);
}

}  // namespace runtime
