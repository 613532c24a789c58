#include "runtime/checkpoint_presets.hpp"

#include <boost/json/array.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace runtime {

namespace json = boost::json;

namespace {

constexpr int kSpecials =
    256;  // the last ids of every vocabulary; offsets into them as in the real one
constexpr int kBos = 0, kEndOfMessage = 2, kMediaPad = 21, kPad = 255;

struct Geometry {
  int vocab, hidden, layers, dense_width;
  int kda_heads, kda_dim, heads, d_nope, d_rope, d_v, kv_lora;
  int experts, expert_width, shared_experts;
  std::vector<int> full_attention;  // 1-based
};

json::object quantization() {
  const json::object weights = {
      {"group_size", 32},    {"num_bits", 4},     {"scale_dtype", "torch.uint8"},
      {"strategy", "group"}, {"symmetric", true}, {"type", "float"},
      {"dynamic", false}};
  const json::object group = {{"format", "mxfp4-pack-quantized"},
                              {"input_activations", nullptr},
                              {"output_activations", nullptr},
                              {"targets", json::array{"Linear"}},
                              {"weights", weights}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "mxfp4-pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", json::object{{"group_0", group}}},
          {"ignore", json::array{"re:.*self_attn.*", "re:.*shared_experts.*",
                                 "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*"}}};
}

void add_token_ids(json::object& config, int vocab) {
  const int base = vocab - kSpecials;
  config["bos_token_id"] = base + kBos;
  config["eos_token_id"] = base + kEndOfMessage;
  config["pad_token_id"] = base + kPad;
}

json::object linear_attention(const Geometry& g) {
  json::array kda, full;
  for (const int layer : g.full_attention) full.emplace_back(layer);
  for (int layer = 1; layer <= g.layers; ++layer) {
    bool is_full = false;
    for (const int other : g.full_attention) is_full = is_full || other == layer;
    if (!is_full) kda.emplace_back(layer);
  }
  return {{"num_heads", g.kda_heads},
          {"head_dim", g.kda_dim},
          {"short_conv_kernel_size", 4},
          {"full_attn_layers", full},
          {"kda_layers", kda}};
}

// What both families say.
json::object text_config(const Geometry& g) {
  json::object text = {{"architectures", json::array{"KimiLinearForCausalLM"}},
                       {"model_type", "kimi_linear"},
                       {"vocab_size", g.vocab},
                       {"hidden_size", g.hidden},
                       {"intermediate_size", g.dense_width},
                       {"num_hidden_layers", g.layers},
                       {"num_attention_heads", g.heads},
                       {"num_key_value_heads", g.heads},
                       {"rms_norm_eps", 1e-5},
                       {"max_position_embeddings", 1048576},
                       {"dtype", "bfloat16"},
                       {"kv_lora_rank", g.kv_lora},
                       {"qk_nope_head_dim", g.d_nope},
                       {"qk_rope_head_dim", g.d_rope},
                       {"v_head_dim", g.d_v},
                       {"mla_use_nope", true},
                       {"linear_attn_config", linear_attention(g)},
                       {"first_k_dense_replace", 1},
                       {"moe_layer_freq", 1},
                       {"num_experts", g.experts},
                       {"num_experts_per_token", 4},
                       {"num_shared_experts", g.shared_experts},
                       {"moe_intermediate_size", g.expert_width},
                       {"moe_renormalize", true},
                       {"moe_router_activation_func", "sigmoid"},
                       {"use_grouped_topk", true},
                       {"num_expert_group", 1},
                       {"topk_group", 1},
                       {"tie_word_embeddings", false}};
  add_token_ids(text, g.vocab);
  return text;
}

json::object k3(const Geometry& g, int q_lora, int latent) {
  json::object text = text_config(g);
  text["hidden_act"] = "situ";
  text["activation_situ_beta"] = 4.0;
  text["activation_situ_linear_beta"] = 25.0;
  text["q_lora_rank"] = q_lora;
  text["mla_use_output_gate"] = true;
  json::object& linear = text["linear_attn_config"].get_object();
  linear["use_full_rank_gate"] = true;
  linear["gate_lower_bound"] = -5.0;
  text["attn_res_block_size"] = 4;
  text["routed_expert_hidden_size"] = latent;
  text["latent_moe_use_norm"] = true;
  text["topk_method"] = "noaux_tc";
  text["routed_scaling_factor"] = 1.0;
  text["num_nextn_predict_layers"] = 0;
  text["quantization_config"] = quantization();
  json::object config = {{"architectures", json::array{"KimiK3ForConditionalGeneration"}},
                         {"model_type", "kimi_k3"},
                         {"dtype", "bfloat16"},
                         {"image_placeholder", "<|kimi_image_placeholder|>"},
                         {"media_placeholder_token_id", g.vocab - kSpecials + kMediaPad},
                         {"tie_word_embeddings", false},
                         {"text_config", std::move(text)}};
  add_token_ids(config, g.vocab);
  return config;
}

json::object kimi_linear(const Geometry& g) {
  json::object config = text_config(g);
  config["hidden_act"] = "silu";
  config["q_lora_rank"] = nullptr;
  config["mla_use_output_gate"] = false;
  config["routed_scaling_factor"] = 2.446;
  return config;
}

}  // namespace

std::vector<std::string_view> preset_names() {
  return {"tiny-k3", "tiny-linear", "bench-k3", "bench-linear", "train-k3", "chat-k3"};
}

json::object preset_config(std::string_view name) {
  Geometry g{.vocab = 512,
             .hidden = 256,
             .layers = 9,
             .dense_width = 384,
             .kda_heads = 4,
             .kda_dim = 64,
             .heads = 4,
             .d_nope = 32,
             .d_rope = 16,
             .d_v = 32,
             .kv_lora = 64,
             .experts = 16,
             .expert_width = 96,
             .shared_experts = 2,
             .full_attention = {4, 8, 9}};
  if (name == "tiny-k3") return k3(g, 96, 128);
  if (name == "tiny-linear") {
    g.layers = 7;
    g.dense_width = 512;
    g.expert_width = 128;
    g.shared_experts = 1;
    g.full_attention = {4, 7};
    return kimi_linear(g);
  }
  if (name == "train-k3" || name == "chat-k3") {
    g.vocab = 4096;
    g.layers = 8;
    g.dense_width = 768;
    g.d_v = 64;
    g.expert_width = 128;
    g.full_attention = {4, 8};
    // The model that ships: 4096 ranks beside the special tokens, and small enough in bf16.
    if (name == "chat-k3") {
      g.vocab = 4352;
      g.expert_width = 96;
    }
    return k3(g, 96, 128);
  }
  g = {.vocab = 16384,
       .hidden = 1024,
       .layers = 12,
       .dense_width = 4096,
       .kda_heads = 8,
       .kda_dim = 128,
       .heads = 8,
       .d_nope = 128,
       .d_rope = 64,
       .d_v = 128,
       .kv_lora = 256,
       .experts = 24,
       .expert_width = 512,
       .shared_experts = 1,
       .full_attention = {4, 8, 12}};
  if (name == "bench-k3") return k3(g, 384, 512);
  if (name == "bench-linear") {
    g.experts = 16;
    g.expert_width = 384;
    return kimi_linear(g);
  }
  throw std::runtime_error("unknown preset \"" + std::string(name) +
                           "\"; presets are tiny-k3, tiny-linear, bench-k3, bench-linear, train-k3 and chat-k3");
}

}  // namespace runtime
