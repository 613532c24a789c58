// A multi-head latent attention layer without positions, in the absorbed form:
// one latent row per token is cached, and all heads read it.
#pragma once

#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/adapter/network_adapter.hpp"
#include "runtime/aligned_floats.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/packed_weights.hpp"

namespace runtime {

// q_a_layernorm and kv_a_layernorm alone keep their class's default instead of rms_norm_eps.
inline constexpr float kLatentNormEps = 1e-6f;

// Scratch that all MLA layers of a model share.
struct MlaScratch {
  RowBuffer in;  // [rows, query (q_lora, or heads * (d_nope + d_rope)) | gate heads * d_v | kv_lora
                 // + d_rope]
  RowBuffer bottleneck;  // [rows, q_lora] normalised; only with q_lora, as is
  RowBuffer q;           // [rows, heads * (d_nope + d_rope)]
  RowBuffer out;  // [rows, heads * d_v]
  MlaScratch(const ModelConfig& config, size_t max_rows);
};

class MlaLayer {
 public:
  // `name` ends with "self_attn."; `page_offset`: this layer's rows inside a page.
  MlaLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name,
           uint64_t page_offset, const ModelOptions& options);
  // x: [rows, hidden] normed input; out: [rows, hidden]. Appends the batch's latent rows to its
  // pages.
  void forward(kernels::Ops& ops, kernels::Rows x, const kernels::BatchView& batch,
               const CacheMemory& memory, MlaScratch& scratch, kernels::MutableRows out,
               const LayerAdapterUse& adapter) const;

 private:
  MlaConfig config_;
  uint64_t page_offset_;
  uint32_t page_tokens_;
  kernels::DType kv_dtype_;
  kernels::MatrixPtr in_;                // the stack whose outputs are MlaScratch::in
  kernels::MatrixPtr q_;                 // q_b_proj, or none
  std::vector<float> q_norm_, kv_norm_;  // [q_lora], [kv_lora]
  std::vector<kernels::MatrixPtr> absorb_k_,
      absorb_v_;            // [heads]: kv_b_proj, cut per head (see MlaArgs)
  kernels::MatrixPtr out_;  // [hidden, heads * d_v]
};

}  // namespace runtime
