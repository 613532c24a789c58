// Prefill topologies: prompts of one length in a closed loop.
#include <map>
#include <tuple>

#include "runtime/sim/experiment.hpp"
#include "runtime/sim/prefill_load.hpp"

namespace runtime {
namespace {

constexpr uint64_t kClientsMost = 4096;

struct Topology {
  std::string layout;
  bool split_tokens = false;  // ranks divide tokens among them for mixes and norms
  bool operator<(const Topology& other) const {
    return std::tie(layout, split_tokens) < std::tie(other.layout, other.split_tokens);
  }
};

class PrefillExperiment final : public ExperimentKind {
 public:
  PrefillExperiment(const ExperimentBase& base, TomlFields& in) : base_(base) {
    in.whole("prompt-tokens", load_.prompt_tokens, 1, 1u << 24);
    in.whole("batch-tokens", load_.batch_tokens, 1, 1u << 24);
    in.number("arrival-us", load_.arrival_us, 0, 1e9);
    if (load_.batch_tokens < load_.prompt_tokens)
      in.fail("batch-tokens", "is less than prompt-tokens: whole prompts are packed");
  }

  Prediction predict(TomlFields& in) override {
    std::vector<std::string> order;
    in.texts("order", order);
    uint32_t clients = 32;
    in.whole("clients", clients, 1, kClientsMost);
    if (!order.empty()) return {in_order(order, clients), "1 = so", ""};
    Topology of, over;
    in.require("layout", "one such as \"PP8xTP1\", or `order` with several");
    in.text("layout", of.layout);
    in.flag("split-tokens", of.split_tokens);
    in.text("over", over.layout);
    in.flag("over-split-tokens", over.split_tokens);
    Topology passes;
    in.text("passes", passes.layout);
    if (!passes.layout.empty()) return {crossover(of, passes, clients), "clients", ""};
    if (!over.layout.empty()) return {rate(of, clients) / rate(over, clients), "ratio", ""};
    // Leave one out: as if the other layout's figure had set pipeline_factor.
    Topology factor_of;
    double factor_from = 0;
    in.text("factor-of", factor_of.layout);
    in.number("factor-from", factor_from, 0, 1e12);
    const double fitted = factor_of.layout.empty() ? 1 : factor_from / rate(factor_of, clients);
    return {rate(of, clients) * fitted, "tok/s/GPU", ""};
  }

 private:
  double rate(const Topology& topology, uint32_t clients) {
    const auto key = std::make_pair(topology, clients);
    if (const auto known = rates_.find(key); known != rates_.end()) return known->second;
    StepOptions options;
    options.sequence_parallel = topology.split_tokens;
    const StepModel model = base_.model(topology.layout, options);
    PrefillLoad load = load_;
    load.clients = clients;
    const double rate = prefill_rate(model, load).tokens_per_s / model.layout().ranks();
    rates_.emplace(key, rate);
    return rate;
  }

  // Clients at which `late` draws level with `early`, between whole ones by interpolation; `most`
  // when it never does.
  double crossover(const Topology& late, const Topology& early, uint32_t most) {
    double before = 0;  // late less early, one client fewer
    for (uint32_t clients = 1; clients <= most; ++clients) {
      const double ahead = rate(late, clients) - rate(early, clients);
      if (ahead >= 0) return clients == 1 ? 1 : clients - ahead / (ahead - before);
      before = ahead;
    }
    return most;
  }

  double in_order(const std::vector<std::string>& layouts, uint32_t clients) {
    for (size_t i = 1; i < layouts.size(); ++i) {
      if (!(rate({layouts[i - 1]}, clients) > rate({layouts[i]}, clients))) return 0;
    }
    return 1;
  }

  const ExperimentBase& base_;
  PrefillLoad load_;
  std::map<std::pair<Topology, uint32_t>, double> rates_;
};

}  // namespace

std::unique_ptr<ExperimentKind> prefill_experiment(const ExperimentBase& base, TomlFields& in) {
  return std::make_unique<PrefillExperiment>(base, in);
}

}  // namespace runtime
