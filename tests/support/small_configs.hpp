// Configurations of networks small enough for finite differences, one for each kind of layer and
// two whole ones.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "runtime/model_config.hpp"

namespace support {

struct SmallNetwork {
  bool k3 = true;       // else Kimi-Linear's variants of every part
  int layers = 4;       // 1-based MLA layers: `full`
  boost::json::array full = {3};
  int first_dense = 1;  // layers before the mixtures
  int q_lora = 6;       // 0: none
  int latent = 8;       // 0: experts work on the hidden width

  runtime::ModelConfig config() const {
    namespace json = boost::json;
    json::array kda;
    for (int layer = 1; layer <= layers; ++layer) {
      bool is_full = false;
      for (const auto& other : full) is_full = is_full || other == layer;
      if (!is_full) kda.emplace_back(layer);
    }
    json::object linear = {{"num_heads", 2},
                           {"head_dim", 32},
                           {"short_conv_kernel_size", 4},
                           {"full_attn_layers", full},
                           {"kda_layers", kda}};
    if (k3) {
      linear["use_full_rank_gate"] = true;
      linear["gate_lower_bound"] = -5.0;
    }
    json::object text = {{"architectures", json::array{"KimiLinearForCausalLM"}},
                         {"model_type", "kimi_linear"},
                         {"vocab_size", 13},
                         {"hidden_size", 16},
                         {"intermediate_size", 24},
                         {"num_hidden_layers", layers},
                         {"num_attention_heads", 2},
                         {"num_key_value_heads", 2},
                         {"rms_norm_eps", 1e-5},
                         {"max_position_embeddings", 4096},
                         {"hidden_act", k3 ? "situ" : "silu"},
                         {"kv_lora_rank", 8},
                         {"qk_nope_head_dim", 4},
                         {"qk_rope_head_dim", 2},
                         {"v_head_dim", 4},
                         {"mla_use_nope", true},
                         {"mla_use_output_gate", k3},
                         {"linear_attn_config", linear},
                         {"first_k_dense_replace", first_dense},
                         {"moe_layer_freq", 1},
                         {"num_experts", 6},
                         {"num_experts_per_token", 2},
                         {"num_shared_experts", 2},
                         {"moe_intermediate_size", 8},
                         {"moe_renormalize", true},
                         {"moe_router_activation_func", "sigmoid"},
                         {"use_grouped_topk", true},
                         {"num_expert_group", 1},
                         {"topk_group", 1},
                         {"routed_scaling_factor", k3 ? 1.0 : 2.446},
                         {"tie_word_embeddings", false},
                         {"bos_token_id", 0},
                         {"eos_token_id", 1},
                         {"pad_token_id", 2}};
    if (q_lora != 0) {
      text["q_lora_rank"] = q_lora;
    } else {
      text["q_lora_rank"] = nullptr;
    }
    if (k3) {
      text["activation_situ_beta"] = 4.0;
      text["activation_situ_linear_beta"] = 25.0;
      text["attn_res_block_size"] = 2;
    }
    if (latent != 0) {
      text["routed_expert_hidden_size"] = latent;
      text["latent_moe_use_norm"] = true;
    }
    return runtime::ModelConfig::parse(json::serialize(text), "small network");
  }
};

}  // namespace support
