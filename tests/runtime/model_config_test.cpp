#include "runtime/model_config.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/state_layout.hpp"
#include "weights_support.hpp"

using runtime::LayerKind;
using runtime::ModelConfig;
namespace json = boost::json;

namespace {

// The published geometry of the real model.
json::object real_k3() {
  json::object config = runtime::preset_config("tiny-k3");
  json::object& text = config["text_config"].get_object();
  const auto set = [&text](const char* key, json::value value) { text[key] = std::move(value); };
  for (const auto& [key, value] : {std::pair<const char*, int>{"hidden_size", 7168},
                                   {"vocab_size", 163840},
                                   {"intermediate_size", 33792},
                                   {"num_hidden_layers", 93},
                                   {"num_attention_heads", 96},
                                   {"q_lora_rank", 1536},
                                   {"kv_lora_rank", 512},
                                   {"qk_nope_head_dim", 128},
                                   {"qk_rope_head_dim", 64},
                                   {"v_head_dim", 128},
                                   {"num_experts", 896},
                                   {"num_experts_per_token", 16},
                                   {"moe_intermediate_size", 3072},
                                   {"routed_expert_hidden_size", 3584},
                                   {"attn_res_block_size", 12}}) {
    set(key, value);
  }
  json::array kda, full;
  for (int layer = 1; layer <= 93; ++layer)
    (layer % 4 == 0 || layer == 93 ? full : kda).emplace_back(layer);
  json::object& linear = text["linear_attn_config"].get_object();
  linear["num_heads"] = 96;
  linear["head_dim"] = 128;
  linear["kda_layers"] = kda;
  linear["full_attn_layers"] = full;
  return config;
}

ModelConfig parse(const json::object& object) {
  return ModelConfig::parse(json::serialize(object), "config.json");
}

}  // namespace

TEST_CASE("The geometry of K3 is read and sized as published", "[runtime][config]") {
  const ModelConfig config = parse(real_k3());
  CHECK(std::count(config.layers.begin(), config.layers.end(), LayerKind::kMla) == 24);
  CHECK(config.layers[91] == LayerKind::kMla);
  CHECK(config.layers[92] == LayerKind::kMla);
  CHECK(config.kda.lower_bound == -5.0f);
  CHECK(config.kda.full_rank_gate);
  CHECK(config.mla.q_lora == 1536);
  CHECK(config.mla.output_gate);
  CHECK(config.ffn.activation.kind == kernels::Activation::kSiTU);
  CHECK(config.ffn.latent == 3584);
  CHECK(config.ffn.latent_norm);
  CHECK_FALSE(config.is_moe(0));
  CHECK(config.is_moe(1));
  CHECK(config.residual_block == 12);

  const runtime::StateLayout layout(config, 64, kernels::DType::kF32);
  const uint64_t recurrent = uint64_t{69} * 96 * 128 * 128 * 4,
                 conv = uint64_t{69} * 3 * 3 * 12288 * 4;
  CHECK(layout.state_bytes == recurrent + conv);
  CHECK(layout.page_bytes == uint64_t{24} * 64 * 576 * 4);
  CHECK(layout.kda[1].recurrent == layout.kda[0].conv + 3 * 3 * 12288 * 4);
  CHECK(layout.mla[7] == uint64_t{64} * 576 * 4);
  CHECK(runtime::StateLayout(config, 64, kernels::DType::kBF16).page_bytes * 2 ==
        layout.page_bytes);
}

TEST_CASE("Kimi-Linear lacks what its flat config does not name", "[runtime][config]") {
  const ModelConfig config = parse(runtime::preset_config("tiny-linear"));
  CHECK_FALSE(config.kda.lower_bound.has_value());
  CHECK_FALSE(config.kda.full_rank_gate);
  CHECK(config.mla.q_lora == 0);
  CHECK_FALSE(config.mla.output_gate);
  CHECK(config.ffn.activation.kind == kernels::Activation::kSwiGLU);
  CHECK(config.ffn.latent == 0);
  CHECK(config.ffn.routed_scale == 2.446f);
  CHECK(config.residual_block == 0);
  CHECK_FALSE(config.has_vision);
  CHECK_FALSE(config.media_id.has_value());
}

TEST_CASE("End ids come from the text config, the top level and generation_config.json",
          "[runtime][config]") {
  json::object config = runtime::preset_config("tiny-k3");
  config["text_config"].get_object()["eos_token_id"] = {258, 257};
  config["eos_token_id"] = 300;
  const damage::TemporaryDirectory directory;
  damage::write(directory.file("config.json"), json::serialize(config));
  CHECK(ModelConfig::load(directory.path()).end_ids ==
        std::vector<runtime::TokenId>{257, 258, 300});
  damage::write(directory.file("generation_config.json"),
                "{\"eos_token_id\": [259, 258], \"temperature\": 1.0}");
  CHECK(ModelConfig::load(directory.path()).end_ids ==
        std::vector<runtime::TokenId>{257, 258, 259, 300});
}

TEST_CASE("A vision tower is noted together with its placeholder", "[runtime][config]") {
  json::object config = runtime::preset_config("tiny-k3");
  config["vision_config"] = {{"patch_size", 14}};
  CHECK(parse(config).has_vision);
  CHECK(parse(config).media_id == 277);
  CHECK(parse(config).bos_id == 256);
  CHECK(parse(config).pad_id == 511);
}

TEST_CASE("Every preset is a config this program reads", "[runtime][config]") {
  for (const auto name : runtime::preset_names()) {
    INFO(name);
    CHECK(parse(runtime::preset_config(name)).layer_count() >= 7);
  }
  CHECK_THROWS_WITH(
      runtime::preset_config("huge"),
      "unknown preset \"huge\"; presets are tiny-k3, tiny-linear, bench-k3, bench-linear, "
      "train-k3 and chat-k3");
}
