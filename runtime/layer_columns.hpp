// Where the parts of a layer's stacked input projection lie: the linear layers that read the same
// input are one matrix, whose outputs stand side by side in this order.
#pragma once

#include <cstddef>

#include "runtime/model_config.hpp"

namespace runtime {

// q D | k D | v D | output gate (whole, or its bottleneck of d) | decay bottleneck d | beta heads.
struct KdaColumns {
  size_t width;  // D = heads * d
  size_t gate, decay, beta, total;
  explicit KdaColumns(const KdaConfig& kda) : width(size_t{kda.heads} * kda.d) {
    gate = 3 * width;
    decay = gate + (kda.full_rank_gate ? width : kda.d);
    beta = decay + kda.d;
    total = beta + kda.heads;
  }
};

// query (q_lora, or of all heads) | output gate, if any | latent kv_lora | shared key d_rope.
struct MlaColumns {
  size_t query_width, value_width;  // all heads
  size_t query, gate, latent, total;
  explicit MlaColumns(const MlaConfig& mla)
      : query_width(size_t{mla.heads} * (mla.d_nope + mla.d_rope)),
        value_width(size_t{mla.heads} * mla.d_v) {
    query = 0;
    gate = mla.q_lora != 0 ? mla.q_lora : query_width;
    latent = gate + (mla.output_gate ? value_width : 0);
    total = latent + mla.kv_lora + mla.d_rope;
  }
};

// Of a mixture: latent z | shared gate | shared up | router logits.
struct MixtureColumns {
  size_t routed_width;  // width the experts work in
  size_t shared_width;  // of all shared experts together
  size_t gate, up, router, total;
  explicit MixtureColumns(const ModelConfig& config)
      : routed_width(config.ffn.latent != 0 ? config.ffn.latent : config.hidden),
        shared_width(size_t{config.ffn.shared_experts} * config.ffn.expert_width) {
    gate = config.ffn.latent;
    up = gate + shared_width;
    router = up + shared_width;
    total = router + config.ffn.experts;
  }
};

}  // namespace runtime
