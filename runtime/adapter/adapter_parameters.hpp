// The factors of an AdapterLayout as layers use them: pointers into an array of values and one of
// gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/adapter/adapter_layout.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/network_parameters.hpp"

namespace runtime {

// Of a linear layer W[n, k]; a.value null: it has none.
template <class Real>
struct LowRankWeight {
  Weight<Real> a, b;  // [rank, k], [n, rank]
  size_t n = 0, k = 0;

  explicit operator bool() const { return a.value != nullptr; }
};

template <class Real>
struct ExpertLowRankWeights {
  LowRankWeight<Real> w1, w3, w2;
};

template <class Real>
struct LayerAdapterWeights {
  uint32_t rank = 0;
  Real scale = 1;  // y += scale B (A x)
  LowRankWeight<Real> out;                          // o_proj of KDA or MLA
  LowRankWeight<Real> query, latent;                // q_a_proj, kv_a_proj_with_mqa
  LowRankWeight<Real> gate_up, down;                // of the dense layer or the shared experts
  std::vector<ExpertLowRankWeights<Real>> experts;  // empty: none has any

  // Whether a module before the core of the attention has factors.
  bool before_attention() const { return query || latent; }
  bool in_attention() const { return out || before_attention(); }
  bool any() const { return in_attention() || gate_up || down || !experts.empty(); }
};

template <class Real>
class AdapterParameters {
 public:
  // grads may be null. The arrays must outlive this.
  AdapterParameters(const ModelConfig& config, const AdapterLayout& layout, double scale,
                    const Real* values, Real* grads)
      : layout_(&layout), values_(values), grads_(grads) {
    for (uint32_t i = 0; i < config.layer_count(); ++i) add_layer(config, i, Real(scale));
  }

  const std::vector<LayerAdapterWeights<Real>>& layers() const { return layers_; }
  // The first layer with factors.
  size_t first_layer() const {
    size_t layer = 0;
    while (!layers_[layer].any()) ++layer;
    return layer;
  }

 private:
  Weight<Real> at(const Parameter* parameter, size_t index) const {
    const size_t each = parameter->count / (parameter->shape.size() == 3 ? parameter->shape[0] : 1);
    const size_t offset =
        parameter->offset + (index * each < parameter->count ? index * each : 0);
    return {values_ + offset, grads_ == nullptr ? nullptr : grads_ + offset};
  }

  // Expert `index` of routed ones; a shared factor is every expert's.
  LowRankWeight<Real> module(const std::string& name, size_t index = 0) const {
    const Parameter *a = layout_->find(name + ".lora_A"), *b = layout_->find(name + ".lora_B");
    if (a == nullptr) return {};
    return {at(a, index), at(b, index), b->shape[b->shape.size() - 2], a->shape.back()};
  }

  void add_layer(const ModelConfig& config, uint32_t index, Real scale) {
    const std::string name = "model.layers." + std::to_string(index) + ".";
    const std::string attention = name + "self_attn.", moe = name + "block_sparse_moe.";
    const std::string dense = config.is_moe(index) ? moe + "shared_experts." : name + "mlp.";
    LayerAdapterWeights<Real> layer;
    layer.rank = layout_->rank();
    layer.scale = scale;
    layer.out = module(attention + "o_proj");
    layer.query = module(attention + "q_a_proj");
    layer.latent = module(attention + "kv_a_proj_with_mqa");
    layer.gate_up = module(dense + "gate_up_proj");
    layer.down = module(dense + "down_proj");
    for (uint32_t id = 0; config.is_moe(index) && id < config.ffn.experts; ++id) {
      const ExpertLowRankWeights<Real> expert = {module(moe + "experts.w1", id),
                                                 module(moe + "experts.w3", id),
                                                 module(moe + "experts.w2", id)};
      if (expert.w1 || expert.w3 || expert.w2) layer.experts.push_back(expert);
    }
    layers_.push_back(std::move(layer));
  }

  const AdapterLayout* layout_;
  const Real* values_;
  Real* grads_;
  std::vector<LayerAdapterWeights<Real>> layers_;
};

}  // namespace runtime
