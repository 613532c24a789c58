// Block drafts under load: what trimming them brings, by how many requests run.
#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/sim/experiment.hpp"
#include "runtime/sim/trim_panel.hpp"

namespace runtime {
namespace {

enum class Question { kGain, kFullLength, kTrimmedLength, kLeastGain };

class TrimmingExperiment final : public ExperimentKind {
 public:
  TrimmingExperiment(const ExperimentBase& base, TomlFields& in) {
    std::string layout = "TP8";
    in.text("layout", layout);
    in.whole("context", panel_.context, 1, 1u << 30);
    in.number("confidence-spread", panel_.acceptance.spread, 1e-3, 1e3);
    in.whole("seed", panel_.seed, 0, uint64_t{1} << 62);
    model_ = std::make_unique<StepModel>(base.model(layout));
  }

  Prediction predict(TomlFields& in) override {
    uint32_t requests = 256;
    double length = 0;
    bool waits = false;
    Question what{};
    in.whole("requests", requests, 1, 1u << 12);
    in.require("accept-length", "tokens of a step when all drafts are verified");
    in.number("accept-length", length, 1.001, kDraftTokens + 0.999);
    in.flag("waits", waits);  // for this step's confidences; else they are one step old
    in.one_of("what", what, {"gain", "full-length", "trimmed-length", "least-gain"});
    switch (what) {
      case Question::kGain:
        return {gain(length, requests, waits).gain, "part", ""};
      case Question::kFullLength:
        return {gain(length, requests, waits).full_length, "tokens", ""};
      case Question::kTrimmedLength:
        return {gain(length, requests, waits).trimmed_length, "tokens", ""};
      default:
        break;
    }
    double least = gain(length, 1, waits).gain;  // over 1, 2, 4, ... requests
    for (uint32_t few = 2; few <= requests; few *= 2)
      least = std::min(least, gain(length, few, waits).gain);
    return {least, "part", ""};
  }

 private:
  TrimGain gain(double length, uint32_t requests, bool waits) {
    const auto key = std::make_tuple(length, requests, waits);
    if (const auto known = gains_.find(key); known != gains_.end()) return known->second;
    TrimPanel panel = panel_;
    panel.requests = requests;
    panel.acceptance.mean = acceptance_mean(length);
    panel.steps = requests >= 64 ? 100 : 4000 / requests;
    panel.stale_budget = !waits;
    return gains_.emplace(key, trim_gain(*model_, panel)).first->second;
  }

  TrimPanel panel_{.acceptance = {0, 0.5}};
  std::unique_ptr<StepModel> model_;
  std::map<std::tuple<double, uint32_t, bool>, TrimGain> gains_;
};

}  // namespace

std::unique_ptr<ExperimentKind> trimming_experiment(const ExperimentBase& base, TomlFields& in) {
  return std::make_unique<TrimmingExperiment>(base, in);
}

}  // namespace runtime
