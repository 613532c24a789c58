#include "runtime/adapter/adapter_layout.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace runtime {

namespace {

constexpr uint32_t kRankMax = 1024;

std::string known_targets() {
  std::string text;
  for (const std::string_view one : kAdapterTargets) {
    if (!text.empty()) text += ", ";
    text += one;
  }
  return text;
}

}  // namespace

void check_adapter_settings(const AdapterSettings& settings) {
  if (settings.rank == 0 || settings.rank > kRankMax) {
    throw std::invalid_argument("rank must be 1 to " + std::to_string(kRankMax) + ", not " +
                                std::to_string(settings.rank));
  }
  if (!std::isfinite(settings.alpha) || settings.alpha <= 0)
    throw std::invalid_argument("alpha must be a positive number");
  const auto given = [&](std::string_view name) {
    return std::find(settings.targets.begin(), settings.targets.end(), name) !=
           settings.targets.end();
  };
  for (const std::string& target : settings.targets) {
    if (std::find(std::begin(kAdapterTargets), std::end(kAdapterTargets), target) ==
        std::end(kAdapterTargets)) {
      throw std::invalid_argument("targets: \"" + target + "\" is none of " + known_targets());
    }
  }
  if (given("gate_proj") != given("up_proj"))
    throw std::invalid_argument("targets: gate_proj and up_proj share a factor; name both");
}

AdapterLayout::AdapterLayout(const ModelConfig& config, const AdapterSettings& settings)
    : rank_(settings.rank), targets_(settings.targets) {
  check_adapter_settings(settings);
  for (uint32_t index = 0; index < config.layer_count(); ++index) layer(config, index);
  if (parameters_.empty()) {
    throw std::invalid_argument(
        "targets: this model has none of these modules; it may have o_proj, down_proj, w1");
  }
}

const Parameter* AdapterLayout::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &parameters_[it->second];
}

std::vector<std::string> AdapterLayout::targets() const {
  std::vector<std::string> out;
  for (const std::string_view target : kAdapterTargets) {
    std::string end = ".";
    end += target == "gate_proj" || target == "up_proj" ? "gate_up_proj" : target;
    end += ".lora_A";
    const auto is_of = [&](const Parameter& p) { return p.name.ends_with(end); };
    if (std::any_of(parameters_.begin(), parameters_.end(), is_of)) out.emplace_back(target);
  }
  return out;
}

bool AdapterLayout::has(std::string_view target) const {
  return targets_.empty() || std::find(targets_.begin(), targets_.end(), target) != targets_.end();
}

void AdapterLayout::add(std::string name, std::vector<uint64_t> shape) {
  Parameter parameter;
  parameter.offset = size_;
  parameter.count = 1;
  for (const uint64_t extent : shape) parameter.count *= extent;
  parameter.shape = std::move(shape);
  parameter.precision = Precision::kFloat;
  parameter.decays = true;
  size_ += parameter.count;
  index_[name] = parameters_.size();
  parameter.name = std::move(name);
  parameters_.push_back(std::move(parameter));
}

void AdapterLayout::module(const std::string& name, uint64_t n, uint64_t k) {
  add(name + ".lora_A", {rank_, k});
  add(name + ".lora_B", {n, rank_});
}

void AdapterLayout::layer(const ModelConfig& config, uint32_t index) {
  const std::string name = "model.layers." + std::to_string(index) + ".";
  const std::string attention = name + "self_attn.";
  const MlaConfig& mla = config.mla;
  const uint64_t hidden = config.hidden;
  const bool kda = config.layers[index] == LayerKind::kKda;
  if (!kda && mla.q_lora != 0 && has("q_a_proj")) module(attention + "q_a_proj", mla.q_lora, hidden);
  if (!kda && has("kv_a_proj_with_mqa"))
    module(attention + "kv_a_proj_with_mqa", uint64_t{mla.kv_lora} + mla.d_rope, hidden);
  if (has("o_proj")) {
    module(attention + "o_proj", hidden,
           kda ? uint64_t{config.kda.heads} * config.kda.d : uint64_t{mla.heads} * mla.d_v);
  }
  ffn(config, index, name);
}

void AdapterLayout::ffn(const ModelConfig& config, uint32_t index, const std::string& name) {
  const FfnConfig& ffn = config.ffn;
  const bool moe = config.is_moe(index);
  const std::string dense = name + (moe ? "block_sparse_moe.shared_experts." : "mlp.");
  const uint64_t width = moe ? uint64_t{ffn.shared_experts} * ffn.expert_width : ffn.dense_width;
  const uint64_t hidden = config.hidden;
  if (width != 0 && has("gate_proj")) module(dense + "gate_up_proj", 2 * width, hidden);
  if (width != 0 && has("down_proj")) module(dense + "down_proj", hidden, width);
  if (!moe) return;
  const std::string routed = name + "block_sparse_moe.experts.";
  const uint64_t outer = ffn.latent != 0 ? ffn.latent : hidden;
  for (const char* part : {"w1", "w3"}) {
    if (!has(part)) continue;
    add(routed + part + ".lora_A", {1, rank_, outer});
    add(routed + part + ".lora_B", {ffn.experts, ffn.expert_width, rank_});
  }
  if (!has("w2")) return;
  add(routed + "w2.lora_A", {ffn.experts, rank_, ffn.expert_width});
  add(routed + "w2.lora_B", {1, outer, rank_});
}

}  // namespace runtime
