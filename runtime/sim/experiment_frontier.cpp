// Prefill and decode apart: what so many servers of each deliver, and decode steps at measured
// points.
#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/sim/experiment.hpp"
#include "runtime/sim/pd_points.hpp"
#include "runtime/sim/pd_rates.hpp"
#include "runtime/sim/prefill_load.hpp"

namespace runtime {
namespace {

struct Decode {
  std::string layout;
  bool exchange = false;  // of experts' rows
  auto operator<=>(const Decode&) const = default;
};

struct Servers {
  Decode decode;
  uint32_t prefill_servers = 1, decode_servers = 1, requests = 256;
};

// Step times of the model over measured ones, less 1.
struct StepErrors {
  double sum = 0, sizes = 0, largest = 0;
  uint32_t points = 0;
  void add(double error) {
    sum += error;
    sizes += std::fabs(error);
    largest = std::max(largest, std::fabs(error));
    ++points;
  }
};

class FrontierExperiment final : public ExperimentKind {
 public:
  FrontierExperiment(const ExperimentBase& base, TomlFields& in) : base_(base) {
    in.text("prefill", prefill_layout_);
    in.whole("prefill-clients", load_.clients, 1, 4096);
    in.whole("prompt-tokens", load_.prompt_tokens, 1, 1u << 24);
    load_.batch_tokens = 2 * load_.prompt_tokens;
    in.number("answer-tokens", answer_tokens_, 1, 1e9);
    in.one_of("kv", options_.kv, {"bf16", "fp8", "f32"});
    std::string points;
    in.text("points", points);
    if (!points.empty()) points_ = read_pd_points(base.config_directory + "/" + points);
  }

  Prediction predict(TomlFields& in) override {
    std::vector<std::string> arms;
    in.texts("points", arms);
    bool exchange = false;
    in.flag("exchange", exchange);
    if (!arms.empty()) return at_points(in, arms, exchange);
    Servers servers;
    in.require("decode", "a layout, or `points` with several");
    in.text("decode", servers.decode.layout);
    servers.decode.exchange = exchange;
    in.whole("prefill-servers", servers.prefill_servers, 1, 4096);
    in.whole("decode-servers", servers.decode_servers, 1, 4096);
    in.whole("requests", servers.requests, 1, 1u << 16);
    std::string over;
    in.text("over", over);
    enum { kDevice, kUser } per = kDevice;
    in.one_of("per", per, {"device", "user"});
    const PdRates rates = rates_of(servers);
    if (!over.empty()) {  // one server of each
      const PdRates others = rates_of({{over, exchange}, 1, 1, servers.requests});
      return {rates.device_tokens_per_s / others.device_tokens_per_s, "ratio", ""};
    }
    if (per == kUser) return {rates.user_tokens_per_s, "tok/s/user", ""};
    return {rates.device_tokens_per_s, "tok/s/GPU",
            rates.prefill_bound ? "prefill-bound" : "decode-bound"};
  }

 private:
  const StepModel& decode(const Decode& decode) {
    StepOptions options = options_;
    options.expert_exchange = decode.exchange;
    return models_.try_emplace(decode, base_.model(decode.layout, options)).first->second;
  }
  double prefill_tps() {
    if (prefill_tps_ == 0)
      prefill_tps_ = prefill_rate(base_.model(prefill_layout_), load_).tokens_per_s;
    return prefill_tps_;
  }
  PdCluster cluster(const Decode& layout) {
    PdCluster cluster;
    cluster.decode = &decode(layout);
    cluster.prompt_tokens = static_cast<double>(load_.prompt_tokens);
    cluster.answer_tokens = answer_tokens_;
    return cluster;
  }
  PdRates rates_of(const Servers& servers) {
    PdCluster all = cluster(servers.decode);
    all.decode_servers = servers.decode_servers;
    all.prefill_tokens_per_s = servers.prefill_servers * prefill_tps();
    all.devices = parse_layout(prefill_layout_).ranks() * servers.prefill_servers +
                  all.decode->layout().ranks() * servers.decode_servers;
    return pd_rates(all, servers.requests);
  }

  Prediction at_points(TomlFields& in, const std::vector<std::string>& arms, bool exchange) {
    std::string sweep;
    in.text("sweep", sweep);
    enum { kMean, kLargest, kMeanSize } what = kMean;
    in.one_of("error", what, {"mean", "largest", "mean-size"});
    StepErrors errors;
    for (const PdPoint& point : points_) {
      const std::string layout = name_of(point.decode);
      if (std::find(arms.begin(), arms.end(), layout) == arms.end()) continue;
      if (!sweep.empty() && point.sweep != sweep) continue;
      const PdCluster of = cluster({layout, exchange});
      const double batch = point.batch(of.prompt_tokens / of.answer_tokens);
      const auto whole = static_cast<uint32_t>(std::max(1.0, std::round(batch)));
      errors.add(pd_step_us(of, whole) * point.user_tps / 1e6 - 1);
    }
    if (errors.points == 0) in.fail("points", "has none in the table");
    const std::string note = std::to_string(errors.points) + " points, batch by Little's law";
    if (what == kLargest) return {errors.largest, "part", note};
    if (what == kMeanSize) return {errors.sizes / errors.points, "part", note};
    return {1 + errors.sum / errors.points, "model/real", note};
  }

  const ExperimentBase& base_;
  std::string prefill_layout_ = "PP8xTP1";
  PrefillLoad load_{64};
  double answer_tokens_ = 1024;
  StepOptions options_;
  std::vector<PdPoint> points_;
  std::map<Decode, StepModel> models_;
  double prefill_tps_ = 0;  // 0: not known yet
};

}  // namespace

std::unique_ptr<ExperimentKind> frontier_experiment(const ExperimentBase& base, TomlFields& in) {
  return std::make_unique<FrontierExperiment>(base, in);
}

}  // namespace runtime
