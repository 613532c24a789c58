#include "runtime/model_config.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "runtime/config_reader.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

// Limits far above any model of the family: they catch a corrupt file before anything is allocated
// from it.
constexpr uint32_t kMaxWidth = 1u << 20;    // K3: 33792
constexpr uint32_t kMaxVocab = 1u << 24;    // K3: 163840
constexpr uint32_t kMaxLayers = 4096;       // K3: 93
constexpr uint32_t kMaxHeads = 4096;        // K3: 96
constexpr uint32_t kMaxHeadWidth = 4096;    // K3: 128
constexpr uint32_t kMaxExperts = 1u << 16;  // K3: 896
constexpr uint32_t kMaxPositions = 1u << 30;
constexpr uint32_t kMaxTopK = 64;      // the kernels' limits; K3: 16 experts per token,
constexpr uint32_t kMaxBankRows = 63;  // and 8 bank rows

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error(path + ": cannot be read; a model directory needs a config.json");
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

json::object parse_object(std::string_view text, const std::string& source) {
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) throw std::runtime_error(source + ": is not valid JSON (" + error.message() + ")");
  if (!value.is_object()) throw std::runtime_error(source + ": must hold one JSON object");
  return std::move(value.get_object());
}

KdaConfig read_kda(const ConfigReader& linear) {
  KdaConfig kda;
  kda.heads = linear.size("num_heads", 1, kMaxHeads);
  kda.d = linear.size("head_dim", 1, kMaxHeadWidth);
  if (kda.d % 32 != 0) {
    linear.fail("head_dim",
                "is " + std::to_string(kda.d) + "; the KDA kernels need a multiple of 32");
  }
  kda.conv_width = linear.size("short_conv_kernel_size", 2, kernels::kKdaMaxTaps);
  kda.lower_bound = linear.optional_number("gate_lower_bound", -1000, 0);
  if (kda.lower_bound && *kda.lower_bound == 0)
    linear.fail("gate_lower_bound", "is 0; expected a negative number");
  kda.full_rank_gate = linear.flag_or("use_full_rank_gate", false);
  return kda;
}

MlaConfig read_mla(const ConfigReader& text) {
  MlaConfig mla;
  mla.heads = text.size("num_attention_heads", 1, kMaxHeads);
  mla.q_lora = text.size_or("q_lora_rank", 0, 1, kMaxWidth);
  mla.kv_lora = text.size("kv_lora_rank", 1, kMaxWidth);
  mla.d_nope = text.size("qk_nope_head_dim", 1, kMaxHeadWidth);
  mla.d_rope = text.size("qk_rope_head_dim", 1, kMaxHeadWidth);
  mla.d_v = text.size("v_head_dim", 1, kMaxHeadWidth);
  mla.output_gate = text.flag_or("mla_use_output_gate", false);
  if (!text.flag_or("mla_use_nope", false)) {
    text.fail("mla_use_nope",
              "must be true; rotary positions in the attention layers are not supported");
  }
  return mla;
}

kernels::ActivationSpec read_activation(const ConfigReader& text) {
  kernels::ActivationSpec spec;
  const std::string name = text.text("hidden_act");
  if (name == "silu") {
    spec.kind = kernels::Activation::kSwiGLU;
    return spec;
  }
  if (name != "situ")
    text.fail("hidden_act", "is \"" + name + "\"; supported are \"situ\" and \"silu\"");
  spec.kind = kernels::Activation::kSiTU;
  spec.beta = text.number("activation_situ_beta", 1e-6, 1e6);
  spec.linear_beta = text.number_or("activation_situ_linear_beta", 0.0f, -1e6, 1e6);
  return spec;
}

FfnConfig read_ffn(const ConfigReader& text, uint32_t layer_count) {
  FfnConfig ffn;
  ffn.activation = read_activation(text);
  ffn.first_dense = text.size_or("first_k_dense_replace", 0, 0, layer_count);
  ffn.moe_every = text.size_or("moe_layer_freq", 1, 1, kMaxLayers);
  if (ffn.first_dense > 0 || ffn.moe_every > 1)
    ffn.dense_width = text.size("intermediate_size", 1, kMaxWidth);
  ffn.experts = text.size("num_experts", 1, kMaxExperts);
  ffn.top_k = text.size("num_experts_per_token", 1, std::min(ffn.experts, kMaxTopK));
  ffn.shared_experts = text.size_or("num_shared_experts", 0, 0, 1024);
  ffn.expert_width = text.size("moe_intermediate_size", 1, kMaxWidth);
  ffn.latent = text.size_or("routed_expert_hidden_size", 0, 1, kMaxWidth);
  ffn.latent_norm = text.flag_or("latent_moe_use_norm", false);
  ffn.renormalise = text.flag_or("moe_renormalize", true);
  ffn.routed_scale = text.number_or("routed_scaling_factor", 1.0f, 1e-6, 1e6);
  const std::string router = text.text_or("moe_router_activation_func", "sigmoid");
  if (router != "sigmoid") {
    text.fail("moe_router_activation_func", "is \"" + router + "\"; only \"sigmoid\" is supported");
  }
  for (const char* key : {"num_expert_group", "topk_group"}) {
    const uint32_t groups = text.size_or(key, 1, 1, kMaxExperts);
    if (groups != 1)
      text.fail(key, "is " + std::to_string(groups) + "; only 1 (no grouped routing) is supported");
  }
  return ffn;
}

// Both lists are 1-based; together they must name every layer exactly once.
std::vector<LayerKind> read_layers(const ConfigReader& linear, uint32_t layer_count) {
  std::vector<int> named(layer_count, 0);
  std::vector<LayerKind> kinds(layer_count, LayerKind::kKda);
  for (const auto& [key, kind] :
       {std::pair{"kda_layers", LayerKind::kKda}, {"full_attn_layers", LayerKind::kMla}}) {
    for (const uint32_t one_based : linear.sizes(key, 1, layer_count)) {
      if (named[one_based - 1]++ > 0)
        linear.fail(key, "names layer " + std::to_string(one_based) + " a second time");
      kinds[one_based - 1] = kind;
    }
  }
  const auto missing = std::find(named.begin(), named.end(), 0);
  if (missing != named.end()) {
    linear.fail("kda_layers", "and full_attn_layers both lack layer " +
                                  std::to_string(missing - named.begin() + 1) +
                                  " (layers count from 1)");
  }
  for (const auto& [key, kind] :
       {std::pair{"kda_layers", LayerKind::kKda}, {"full_attn_layers", LayerKind::kMla}}) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      linear.fail(key, "is empty; a hybrid model has at least one layer of each kind");
    }
  }
  return kinds;
}

void check_quantization(const ConfigReader& reader) {
  if (reader.find("quantization_config") == nullptr) return;
  const ConfigReader quantization = reader.object("quantization_config");
  const std::string expected =
      "; only \"mxfp4-pack-quantized\" of \"compressed-tensors\" is supported";
  const std::string method = quantization.text("quant_method");
  if (method != "compressed-tensors")
    quantization.fail("quant_method", "is \"" + method + "\"" + expected);
  const std::string format = quantization.text("format");
  if (format != "mxfp4-pack-quantized")
    quantization.fail("format", "is \"" + format + "\"" + expected);
}

void add_ids(const ConfigReader& reader, std::set<TokenId>& ids, uint32_t vocab) {
  for (const uint32_t id : reader.size_or_list("eos_token_id", 0, vocab - 1))
    ids.insert(static_cast<TokenId>(id));
}

std::optional<TokenId> read_id(const ConfigReader& text, const ConfigReader& top,
                               std::string_view key, uint32_t vocab) {
  auto id = text.optional_size(key, 0, vocab - 1);
  if (!id) id = top.optional_size(key, 0, vocab - 1);
  if (!id) return std::nullopt;
  return static_cast<TokenId>(*id);
}

}  // namespace

ModelConfig ModelConfig::parse(std::string_view json_text, const std::string& source) {
  const json::object object = parse_object(json_text, source);
  const ConfigReader top(object, source, "");
  const bool nested = top.find("text_config") != nullptr;
  const ConfigReader text = nested ? top.object("text_config") : top;
  const ConfigReader linear = text.object("linear_attn_config");

  ModelConfig config;
  config.model_type = top.text_or("model_type", "kimi_linear");
  config.hidden = text.size("hidden_size", 1, kMaxWidth);
  config.vocab = text.size("vocab_size", 2, kMaxVocab);
  config.max_positions = text.size("max_position_embeddings", 1, kMaxPositions);
  config.norm_eps = text.number_or("rms_norm_eps", 1e-5f, 1e-12, 1.0);
  config.tied_embeddings = text.flag_or("tie_word_embeddings", false);
  const uint32_t layer_count = text.size("num_hidden_layers", 1, kMaxLayers);
  config.layers = read_layers(linear, layer_count);
  config.kda = read_kda(linear);
  config.mla = read_mla(text);
  config.ffn = read_ffn(text, layer_count);
  config.residual_block = text.size_or("attn_res_block_size", 0,
                                       (layer_count + kMaxBankRows - 1) / kMaxBankRows, kMaxLayers);
  check_quantization(text);
  check_quantization(top);
  config.packed_experts = text.find("quantization_config") != nullptr ||
                          top.find("quantization_config") != nullptr;

  std::set<TokenId> ends;
  add_ids(text, ends, config.vocab);
  add_ids(top, ends, config.vocab);
  config.end_ids.assign(ends.begin(), ends.end());
  config.bos_id = read_id(text, top, "bos_token_id", config.vocab);
  config.pad_id = read_id(text, top, "pad_token_id", config.vocab);
  config.media_id = read_id(text, top, "media_placeholder_token_id", config.vocab);
  config.has_vision = top.find("vision_config") != nullptr;
  return config;
}

ModelConfig ModelConfig::load(const std::string& directory) {
  const std::string path = directory + "/config.json";
  ModelConfig config = parse(read_file(path), path);
  const std::string generation = directory + "/generation_config.json";
  if (std::filesystem::exists(generation)) {
    const json::object object = parse_object(read_file(generation), generation);
    std::set<TokenId> ends(config.end_ids.begin(), config.end_ids.end());
    add_ids(ConfigReader(object, generation, ""), ends, config.vocab);
    config.end_ids.assign(ends.begin(), ends.end());
  }
  return config;
}

}  // namespace runtime
