// The parameters of a ParameterLayout as the layers' backward passes use them: pointers into an
// array of values and one of gradients. A null gradient means frozen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/parameter_layout.hpp"

namespace runtime {

template <class Real>
struct Weight {
  const Real* value = nullptr;
  Real* grad = nullptr;
};

template <class Real>
struct KdaParameters {
  Weight<Real> in;                          // the stack [KdaColumns::total, hidden]
  Weight<Real> decay;                       // f_b [D, d]
  Weight<Real> gate;                        // g_b [D, d], or none
  Weight<Real> out;                         // [hidden, D]
  Weight<Real> conv, a_log, dt_bias, norm;  // [3 D, taps], [heads], [D], [d]
};

template <class Real>
struct MlaParameters {
  Weight<Real> in;         // the stack [MlaColumns::total, hidden]
  Weight<Real> q_norm, q;  // [q_lora], [query width, q_lora], or none
  Weight<Real> kv_norm;    // [kv_lora]
  Weight<Real> kv;         // [heads * (d_nope + d_v), kv_lora]
  Weight<Real> out;        // [hidden, heads * d_v]
};

template <class Real>
struct ExpertParameters {
  Weight<Real> in;   // w1 over w3: [2 * width, routed width]
  Weight<Real> out;  // w2: [routed width, width]
};

template <class Real>
struct FfnParameters {
  Weight<Real> in;    // the stack: gate over up [2 * width, hidden], or [MixtureColumns::total, ..]
  Weight<Real> down;  // of the dense layer or the shared experts, or none
  Weight<Real> norm;  // [latent], or none
  Weight<Real> up;    // [hidden, latent], or none
  std::vector<ExpertParameters<Real>> experts;
};

// One mix of attention residuals and the norm after it.
template <class Real>
struct MixParameters {
  Weight<Real> score_norm, score_proj;  // [hidden], or none
  Weight<Real> norm;                    // [hidden]
};

template <class Real>
struct NetworkParameters {
  struct Layer {
    std::optional<KdaParameters<Real>> kda;
    std::optional<MlaParameters<Real>> mla;
    FfnParameters<Real> ffn;
  };
  Weight<Real> embedding;  // [vocab, hidden]
  std::vector<Layer> layers;
  std::vector<MixParameters<Real>> mixes;  // as ResidualGains: attention, ffn, ..., readout
  Weight<Real> head;                       // [vocab, hidden]; the embedding where tied

  // grads may be null: everything is frozen then.
  NetworkParameters(const ModelConfig& config, const ParameterLayout& layout, const Real* values,
                    Real* grads)
      : layout_(&layout), values_(values), grads_(grads) {
    embedding = at("model.embed_tokens.weight");
    for (uint32_t i = 0; i < config.layer_count(); ++i) add_layer(config, i);
    mixes.push_back({at("model.output_attn_res_norm.weight"),
                     at("model.output_attn_res_proj.weight"), at("model.norm.weight")});
    head = config.tied_embeddings ? embedding : at("lm_head.weight");
  }

  bool learns() const { return grads_ != nullptr; }

 private:
  // Empty where the model has no such parameter.
  Weight<Real> at(const std::string& name) const {
    const Parameter* parameter = layout_->find(name);
    if (parameter == nullptr) return {};
    return {values_ + parameter->offset, grads_ == nullptr ? nullptr : grads_ + parameter->offset};
  }

  void add_layer(const ModelConfig& config, uint32_t index) {
    const std::string name = "model.layers." + std::to_string(index) + ".";
    const std::string attention = name + "self_attn.";
    // Layer 0 reads the bare embedding: nothing is mixed, and its score parameters stay untouched.
    const bool first = index == 0;
    mixes.push_back({first ? Weight<Real>{} : at(name + "self_attention_res_norm.weight"),
                     first ? Weight<Real>{} : at(name + "self_attention_res_proj.weight"),
                     at(name + "input_layernorm.weight")});
    mixes.push_back({at(name + "mlp_res_norm.weight"), at(name + "mlp_res_proj.weight"),
                     at(name + "post_attention_layernorm.weight")});
    Layer layer;
    if (config.layers[index] == LayerKind::kKda) {
      layer.kda =
          KdaParameters<Real>{at(attention + "q_proj.weight"),   at(attention + "f_b_proj.weight"),
                              at(attention + "g_b_proj.weight"), at(attention + "o_proj.weight"),
                              at(attention + "q_conv1d.weight"), at(attention + "A_log"),
                              at(attention + "dt_bias"),         at(attention + "o_norm.weight")};
    } else {
      layer.mla = MlaParameters<Real>{
          at(attention + (config.mla.q_lora != 0 ? "q_a_proj.weight" : "q_proj.weight")),
          at(attention + "q_a_layernorm.weight"),
          at(attention + "q_b_proj.weight"),
          at(attention + "kv_a_layernorm.weight"),
          at(attention + "kv_b_proj.weight"),
          at(attention + "o_proj.weight")};
    }
    layer.ffn =
        config.is_moe(index) ? mixture(config, name + "block_sparse_moe.") : dense(name + "mlp.");
    layers.push_back(std::move(layer));
  }

  FfnParameters<Real> dense(const std::string& name) const {
    return {at(name + "gate_proj.weight"), at(name + "down_proj.weight"), {}, {}, {}};
  }

  FfnParameters<Real> mixture(const ModelConfig& config, const std::string& name) const {
    const char* first = config.ffn.latent != 0           ? "routed_expert_down_proj.weight"
                        : config.ffn.shared_experts != 0 ? "shared_experts.gate_proj.weight"
                                                         : "gate.weight";
    FfnParameters<Real> ffn{at(name + first),
                            at(name + "shared_experts.down_proj.weight"),
                            at(name + "routed_expert_norm.weight"),
                            at(name + "routed_expert_up_proj.weight"),
                            {}};
    for (uint32_t expert = 0; expert < config.ffn.experts; ++expert) {
      const std::string one = name + "experts." + std::to_string(expert) + ".";
      ffn.experts.push_back({at(one + "w1.weight"), at(one + "w2.weight")});
    }
    return ffn;
  }

  const ParameterLayout* layout_;
  const Real* values_;
  Real* grads_;
};

}  // namespace runtime
