#include "runtime/model_costs.hpp"

#include <algorithm>
#include <string>

#include "runtime/state_layout.hpp"
#include "runtime/weights.hpp"

namespace runtime {
namespace {

uint64_t bytes_of(kernels::DType type, uint64_t elements) {
  if (type == kernels::DType::kMXFP4) return elements / 2 + elements / 32;  // and a scale for 32
  return elements * kernels::dtype_bytes(type);
}

uint64_t kda_params(const ModelConfig& config) {
  const uint64_t hidden = config.hidden, d = config.kda.d, width = config.kda.heads * d;
  const uint64_t gate = config.kda.full_rank_gate ? hidden * width : hidden * d + d * width;
  const uint64_t decay = hidden * d + d * width;
  return 4 * hidden * width + gate + decay + hidden * config.kda.heads;  // q, k, v, out; beta
}

uint64_t mla_params(const ModelConfig& config) {
  const MlaConfig& mla = config.mla;
  const uint64_t hidden = config.hidden, heads = mla.heads, latent = mla.kv_lora;
  const uint64_t query_width = heads * (mla.d_nope + mla.d_rope), value_width = heads * mla.d_v;
  const uint64_t query =
      mla.q_lora != 0 ? mla.q_lora * (hidden + query_width) : hidden * query_width;
  const uint64_t gate = mla.output_gate ? hidden * value_width : 0;
  const uint64_t keys_values =
      hidden * (latent + mla.d_rope) + latent * heads * mla.d_nope + latent * value_width;
  return query + gate + keys_values + hidden * value_width;
}

uint64_t routed_width(const ModelConfig& config) {
  return config.ffn.latent != 0 ? config.ffn.latent : config.hidden;
}

uint64_t mixture_params(const ModelConfig& config) {  // without the routed experts
  const FfnConfig& ffn = config.ffn;
  const uint64_t hidden = config.hidden;
  const uint64_t shared = 3 * hidden * ffn.shared_experts * ffn.expert_width;
  return shared + hidden * ffn.experts + 2 * hidden * ffn.latent;  // down to the latent and up
}

}  // namespace

WeightTypes weight_types(const ModelConfig& config, const WeightsFile& file) {
  WeightTypes types;
  const auto type_of = [&](const std::string& name, uint64_t n, uint64_t k) {
    return file.matrix(name, n, k).dtype;
  };
  types.dense = file.table("model.embed_tokens.weight", config.vocab, config.hidden).dtype;
  if (!config.tied_embeddings) types.dense = type_of("lm_head", config.vocab, config.hidden);
  for (uint32_t layer = 0; layer < config.layer_count(); ++layer) {
    if (!config.is_moe(layer)) continue;
    types.experts =
        type_of("model.layers." + std::to_string(layer) + ".block_sparse_moe.experts.0.w1",
                config.ffn.expert_width, routed_width(config));
    break;
  }
  return types;
}

ModelCosts::ModelCosts(const ModelConfig& config, WeightTypes types, kernels::DType kv_dtype) {
  const uint64_t hidden = config.hidden;
  const StateLayout layout(config, 1, kv_dtype);
  const uint64_t row = config.mla.kv_lora + uint64_t{config.mla.d_rope};
  for (uint32_t layer = 0; layer < config.layer_count(); ++layer) {
    if (config.layers[layer] == LayerKind::kKda) {
      shared_params += kda_params(config);
      recurrence_flops += 7 * uint64_t{config.kda.heads} * config.kda.d * config.kda.d;
    } else {
      const uint64_t heads = config.mla.heads;
      shared_params += mla_params(config);
      kv_row_bytes += row * kernels::dtype_bytes(kv_dtype);
      absorbed_flops += 2 * heads * (row + config.mla.kv_lora);
      expanded_flops +=
          2 * heads * (uint64_t{config.mla.d_nope} + config.mla.d_rope + config.mla.d_v);
    }
    if (config.is_moe(layer)) {
      shared_params += mixture_params(config);
      ++mixture_layers;
    } else {
      shared_params += 3 * hidden * config.ffn.dense_width;
    }
  }
  head_params = hidden * config.vocab;
  expert_params = 3 * uint64_t{config.ffn.expert_width} * routed_width(config);
  experts = config.ffn.experts;
  top_k = config.ffn.top_k;
  shared_bytes = bytes_of(types.dense, shared_params);
  head_bytes = bytes_of(types.dense, head_params);
  expert_bytes = bytes_of(types.experts, expert_params);
  embedding_row_bytes = bytes_of(types.dense, hidden);
  state_bytes = layout.state_bytes;
}

double StepCosts::seconds(double bytes_per_s, double flops_per_s) const {
  return std::max(bytes / bytes_per_s, flops / flops_per_s);
}

StepCosts decode_costs(const ModelCosts& costs, const DecodeStep& step) {
  const StepCosts context = context_costs(costs, step.positions);
  const double row_bytes = static_cast<double>(costs.embedding_row_bytes + 2 * costs.state_bytes);
  const auto row_flops =
      static_cast<double>(2 * (costs.active_params() + costs.head_params) + costs.recurrence_flops);
  StepCosts total;
  total.bytes = static_cast<double>(costs.shared_bytes + costs.head_bytes) +
                step.experts * static_cast<double>(costs.expert_bytes) +
                step.sequences * (row_bytes + context.bytes);
  total.flops = step.sequences * (row_flops + context.flops);
  return total;
}

StepCosts context_costs(const ModelCosts& costs, double positions) {
  return {positions * static_cast<double>(costs.kv_row_bytes),
          positions * static_cast<double>(costs.absorbed_flops)};
}

StepCosts prefill_costs(const ModelCosts& costs, double tokens) {
  const double pairs = tokens * (tokens + 1) / 2;  // a token attends to itself and all before it
  const auto token_flops = static_cast<double>(2 * costs.active_params() + costs.recurrence_flops);
  return {0, tokens * token_flops + 2 * static_cast<double>(costs.head_params) +
                 pairs * static_cast<double>(costs.expanded_flops)};
}

}  // namespace runtime
