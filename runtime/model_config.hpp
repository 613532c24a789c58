// What config.json says about a model of the K3 / Kimi-Linear family. Every K3
// feature is switched by the presence of its key. Invariant: a loaded config is consistent, so the
// layers need no checks of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/request.hpp"

namespace runtime {

enum class LayerKind : uint8_t { kKda, kMla };

struct KdaConfig {
  uint32_t heads = 0;
  uint32_t d = 0;  // key and value width of one head
  uint32_t conv_width = 0;
  std::optional<float>
      lower_bound;              // K3's bounded decay gate; absent: the softplus gate of Kimi-Linear
  bool full_rank_gate = false;  // output gate g_proj; else g_a_proj and g_b_proj
};

struct MlaConfig {
  uint32_t heads = 0, d_nope = 0, d_rope = 0, d_v = 0, kv_lora = 0;
  uint32_t q_lora = 0;  // 0: one q_proj
  bool output_gate = false;
};

struct FfnConfig {
  kernels::ActivationSpec activation;
  uint32_t dense_width = 0;  // layers that are not mixtures
  uint32_t first_dense = 0;  // so many layers from the start are dense
  uint32_t moe_every = 1;    // of the others, layers divisible by this are mixtures
  uint32_t experts = 0, top_k = 0, shared_experts = 0, expert_width = 0;
  uint32_t latent =
      0;  // width the routed experts work in; 0: the hidden width, without projections
  bool latent_norm = false;
  bool renormalise = true;
  float routed_scale = 1.0f;
};

class ModelConfig {
 public:
  // Reads DIR/config.json and, if there, the end ids of DIR/generation_config.json. Throws
  // std::runtime_error naming the key.
  static ModelConfig load(const std::string& directory);
  // `source` names the text in error messages.
  static ModelConfig parse(std::string_view json, const std::string& source);

  bool is_moe(uint32_t layer) const {
    return layer >= ffn.first_dense && layer % ffn.moe_every == 0;
  }
  uint32_t layer_count() const { return static_cast<uint32_t>(layers.size()); }

  std::string model_type;
  uint32_t hidden = 0, vocab = 0;
  uint32_t max_positions = 0;
  float norm_eps = 1e-5f;
  bool tied_embeddings = false;  // lm_head is the embedding table
  std::vector<LayerKind> layers;
  KdaConfig kda;
  MlaConfig mla;
  FfnConfig ffn;
  uint32_t residual_block = 0;   // attention residuals: layers per bank row; 0: ordinary residuals
  std::vector<TokenId> end_ids;  // ascending; each ends a sequence
  std::optional<TokenId> bos_id, pad_id;
  bool packed_experts = false;      // the file says that routed experts are stored as MXFP4
  bool has_vision = false;          // the file describes a vision tower; it is not loaded
  std::optional<TokenId> media_id;  // placeholder id of an image
};

}  // namespace runtime
