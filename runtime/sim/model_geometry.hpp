// A model as the cost model sees it: widths, counts and the pattern of its layers, no weights.
// From a Hugging Face config.json; our own rendering of K3's facts is config/geometries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model_config.hpp"

namespace runtime {

enum class KvType : uint8_t { kBf16, kFp8, kF32 };
double bytes_of(KvType type);  // of one element

class ModelGeometry {
 public:
  // `path`: a config.json or a directory with one. Throws std::runtime_error naming file and key.
  static ModelGeometry load(const std::string& path);
  explicit ModelGeometry(const ModelConfig& config);

  struct Layer {
    bool is_mla = false, is_moe = false;
    uint32_t bank_rows = 0;  // attention-residual rows beside the running one
  };
  std::vector<Layer> layers;
  uint64_t hidden = 0, vocab = 0;
  uint64_t kda_heads = 0, kda_d = 0, conv_width = 0;
  uint64_t mla_heads = 0, d_nope = 0, d_rope = 0, d_v = 0, kv_lora = 0, q_lora = 0;
  bool mla_gate = false, kda_full_gate = false;
  uint64_t dense_width = 0;
  uint64_t experts = 0, top_k = 0, shared_experts = 0, expert_width = 0, latent = 0;
  bool has_residual_bank = false;

  uint32_t kda_layers() const;
  uint32_t mla_layers() const;
  uint64_t routed_width() const { return latent != 0 ? latent : hidden; }
  uint64_t expert_params() const { return 3 * expert_width * routed_width(); }  // one, one layer
  uint64_t kv_elements_per_token() const;                                       // all MLA layers
  uint64_t state_bytes() const;  // one sequence, all KDA layers, conv window bf16
  uint64_t conv_bytes() const;   // the part of it that is conv windows
};

}  // namespace runtime
