#include "runtime/train/parameter_layout.hpp"

#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  linear("model.embed_tokens", config.vocab, config.hidden);
  parameters_.back().decays = false;
  for (uint32_t index = 0; index < config.layer_count(); ++index) layer(config, index);
  if (config.residual_block != 0) {
    add("model.output_attn_res_norm.weight", {config.hidden});
    linear("model.output_attn_res_proj", 1, config.hidden);
  }
  add("model.norm.weight", {config.hidden});
  if (!config.tied_embeddings) linear("lm_head", config.vocab, config.hidden);
}

const Parameter* ParameterLayout::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &parameters_[it->second];
}

const Parameter& ParameterLayout::at(const std::string& name) const {
  const Parameter* parameter = find(name);
  VERIFY(parameter != nullptr);
  return *parameter;
}

void ParameterLayout::add(std::string name, std::vector<uint64_t> shape, Precision precision) {
  Parameter parameter;
  parameter.offset = size_;
  parameter.count = 1;
  for (const uint64_t extent : shape) parameter.count *= extent;
  parameter.shape = std::move(shape);
  parameter.precision = precision;
  size_ += parameter.count;
  index_[name] = parameters_.size();
  parameter.name = std::move(name);
  parameters_.push_back(std::move(parameter));
}

void ParameterLayout::linear(const std::string& name, uint64_t n, uint64_t k, Precision precision) {
  add(name + ".weight", {n, k}, precision);
  parameters_.back().decays = n > 1;
}

void ParameterLayout::layer(const ModelConfig& config, uint32_t index) {
  const std::string name = "model.layers." + std::to_string(index) + ".";
  add(name + "input_layernorm.weight", {config.hidden});
  add(name + "post_attention_layernorm.weight", {config.hidden});
  if (config.residual_block != 0) {
    for (const char* part : {"self_attention", "mlp"}) {
      add(name + part + "_res_norm.weight", {config.hidden});
      linear(name + part + "_res_proj", 1, config.hidden);
    }
  }
  if (config.layers[index] == LayerKind::kKda) {
    kda(config, name + "self_attn.");
  } else {
    mla(config, name + "self_attn.");
  }
  ffn(config, index, name);
}

void ParameterLayout::kda(const ModelConfig& config, const std::string& name) {
  const uint64_t d = config.kda.d, width = d * config.kda.heads, hidden = config.hidden;
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) linear(name + part, width, hidden);
  if (config.kda.full_rank_gate) {
    linear(name + "g_proj", width, hidden);
  } else {
    linear(name + "g_a_proj", d, hidden);
  }
  linear(name + "f_a_proj", d, hidden);
  linear(name + "b_proj", config.kda.heads, hidden);
  linear(name + "f_b_proj", width, d);
  if (!config.kda.full_rank_gate) linear(name + "g_b_proj", width, d);
  linear(name + "o_proj", hidden, width);
  for (const char* part : {"q", "k", "v"})
    add(name + part + "_conv1d.weight", {width, 1, config.kda.conv_width}, Precision::kFloat);
  add(name + "A_log", {config.kda.heads}, Precision::kFloat);
  add(name + "dt_bias", {width}, Precision::kFloat);
  add(name + "o_norm.weight", {d});
}

void ParameterLayout::mla(const ModelConfig& config, const std::string& name) {
  const MlaConfig& mla = config.mla;
  const uint64_t hidden = config.hidden, query = uint64_t{mla.heads} * (mla.d_nope + mla.d_rope);
  const uint64_t value = uint64_t{mla.heads} * mla.d_v;
  linear(name + (mla.q_lora != 0 ? "q_a_proj" : "q_proj"), mla.q_lora != 0 ? mla.q_lora : query,
         hidden);
  if (mla.output_gate) linear(name + "g_proj", value, hidden);
  linear(name + "kv_a_proj_with_mqa", uint64_t{mla.kv_lora} + mla.d_rope, hidden);
  if (mla.q_lora != 0) {
    add(name + "q_a_layernorm.weight", {mla.q_lora});
    linear(name + "q_b_proj", query, mla.q_lora);
  }
  add(name + "kv_a_layernorm.weight", {mla.kv_lora});
  linear(name + "kv_b_proj", uint64_t{mla.heads} * (mla.d_nope + mla.d_v), mla.kv_lora);
  linear(name + "o_proj", hidden, value);
}

void ParameterLayout::ffn(const ModelConfig& config, uint32_t index, const std::string& name) {
  const FfnConfig& ffn = config.ffn;
  const uint64_t hidden = config.hidden;
  if (!config.is_moe(index)) {
    linear(name + "mlp.gate_proj", ffn.dense_width, hidden);
    linear(name + "mlp.up_proj", ffn.dense_width, hidden);
    linear(name + "mlp.down_proj", hidden, ffn.dense_width);
    return;
  }
  const std::string moe = name + "block_sparse_moe.";
  const uint64_t shared = uint64_t{ffn.shared_experts} * ffn.expert_width;
  const uint64_t routed = ffn.latent != 0 ? ffn.latent : config.hidden;
  if (ffn.latent != 0) linear(moe + "routed_expert_down_proj", ffn.latent, hidden);
  if (shared != 0) {
    linear(moe + "shared_experts.gate_proj", shared, hidden);
    linear(moe + "shared_experts.up_proj", shared, hidden);
  }
  linear(moe + "gate", ffn.experts, hidden);
  add(moe + "gate.e_score_correction_bias", {ffn.experts}, Precision::kFloat);
  parameters_.back().learned = false;
  if (shared != 0) linear(moe + "shared_experts.down_proj", hidden, shared);
  if (ffn.latent != 0) {
    if (ffn.latent_norm) add(moe + "routed_expert_norm.weight", {ffn.latent});
    linear(moe + "routed_expert_up_proj", hidden, ffn.latent);
  }
  for (uint32_t expert = 0; expert < ffn.experts; ++expert) {
    const std::string one = moe + "experts." + std::to_string(expert) + ".";
    linear(one + "w1", ffn.expert_width, routed, Precision::kExpert);
    linear(one + "w3", ffn.expert_width, routed, Precision::kExpert);
    linear(one + "w2", routed, ffn.expert_width, Precision::kExpert);
  }
}

}  // namespace runtime
