#include "runtime/ffn_layer.hpp"

#include <algorithm>

#include "runtime/layer_columns.hpp"

namespace runtime {

namespace {

class DenseLayer final : public FfnLayer {
 public:
  DenseLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name)
      : width_(config.ffn.dense_width), activation_(config.ffn.activation) {
    const PackedWeights::Part parts[] = {{name + "gate_proj", width_}, {name + "up_proj", width_}};
    in_ = weights.stack(parts, config.hidden);
    down_ = weights.matrix(name + "down_proj", config.hidden, width_);
  }

  void forward(kernels::Ops& ops, kernels::Rows x, size_t rows, FfnScratch& scratch,
               kernels::MutableRows out, const LayerAdapterUse& adapter) const override {
    ops.matmul(x, *in_, scratch.in.rows(), rows);
    adapter.add(ops, &LayerAdapter::gate_up, x, scratch.in.rows(), rows);
    ops.glu(activation_, scratch.in.rows(), scratch.in.columns(width_), scratch.inner.rows(), rows,
            width_);
    ops.matmul(scratch.inner.rows(), *down_, out, rows);
    adapter.add(ops, &LayerAdapter::down, scratch.inner.rows(), out, rows);
  }

 private:
  size_t width_;
  kernels::ActivationSpec activation_;
  kernels::MatrixPtr in_, down_;  // [2 width, hidden], [hidden, width]
};

class MixtureLayer final : public FfnLayer {
 public:
  MixtureLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name)
      : config_(config.ffn), columns_(config), hidden_(config.hidden), norm_eps_(config.norm_eps) {
    std::vector<PackedWeights::Part> parts;
    if (config_.latent != 0) parts.push_back({name + "routed_expert_down_proj", config_.latent});
    if (config_.shared_experts != 0) {
      parts.push_back({name + "shared_experts.gate_proj", columns_.shared_width});
      parts.push_back({name + "shared_experts.up_proj", columns_.shared_width});
      shared_down_ =
          weights.matrix(name + "shared_experts.down_proj", hidden_, columns_.shared_width);
    }
    parts.push_back({name + "gate", config_.experts});
    in_ = weights.stack(parts, hidden_);
    bias_ = weights.vector(name + "gate.e_score_correction_bias", config_.experts);
    if (config_.latent != 0) {
      if (config_.latent_norm)
        norm_ = weights.vector(name + "routed_expert_norm.weight", config_.latent);
      up_ = weights.matrix(name + "routed_expert_up_proj", hidden_, config_.latent);
    }
    const size_t width = columns_.routed_width;
    for (uint32_t expert = 0; expert < config_.experts; ++expert) {
      const std::string part = name + "experts." + std::to_string(expert) + ".";
      kernels::ExpertWeights one;
      one.w1 = weights.matrix(part + "w1", config_.expert_width, width);
      one.w3 = weights.matrix(part + "w3", config_.expert_width, width);
      one.w2 = weights.matrix(part + "w2", width, config_.expert_width);
      experts_.push_back(std::move(one));
    }
  }

  void forward(kernels::Ops& ops, kernels::Rows x, size_t rows, FfnScratch& scratch,
               kernels::MutableRows out, const LayerAdapterUse& adapter) const override {
    ops.matmul(x, *in_, scratch.in.rows(), rows);
    adapter.add(ops, &LayerAdapter::gate_up, x, scratch.in.columns(columns_.gate), rows);

    kernels::RouteArgs route;
    route.logits = scratch.in.columns(columns_.router);
    route.bias = bias_.data();
    route.experts = config_.experts;
    route.top_k = config_.top_k;
    route.renormalise = config_.renormalise;
    route.scale = config_.routed_scale;
    ops.route(route, rows, scratch.routing);

    if (config_.latent != 0) {
      auto mixed = scratch.mixed.rows();
      run_experts(ops, scratch.in.rows(), rows, scratch.routing, mixed, adapter);
      if (config_.latent_norm) {
        const auto normed = scratch.normed.rows();
        ops.rms_norm(mixed, norm_.data(), norm_eps_, normed, rows, config_.latent);
        mixed = normed;
      }
      ops.matmul(mixed, *up_, out, rows);
    } else {
      run_experts(ops, x, rows, scratch.routing, out, adapter);
    }

    if (shared_down_ != nullptr) {
      ops.glu(config_.activation, scratch.in.columns(columns_.gate),
              scratch.in.columns(columns_.up), scratch.inner.rows(), rows, columns_.shared_width);
      ops.matmul(scratch.inner.rows(), *shared_down_, scratch.shared.rows(), rows);
      adapter.add(ops, &LayerAdapter::down, scratch.inner.rows(), scratch.shared.rows(), rows);
      ops.add(scratch.shared.rows(), out, rows, hidden_);
    }
  }

 private:
  void run_experts(kernels::Ops& ops, kernels::Rows z, size_t rows,
                   const kernels::Routing& routing, kernels::MutableRows out,
                   const LayerAdapterUse& adapter) const {
    if (adapter.layer == nullptr || adapter.layer->experts.empty())
      return ops.experts(z, experts_, routing, config_.activation, out, rows);
    kernels::adapted_experts(ops, z, experts_, adapter.layer->experts, routing,
                             config_.activation, out, rows, adapter.scratch->experts);
  }

  FfnConfig config_;
  MixtureColumns columns_;
  size_t hidden_;
  float norm_eps_;
  kernels::MatrixPtr in_;           // the stack whose outputs are FfnScratch::in
  std::vector<float> bias_, norm_;  // [experts], [latent]
  kernels::MatrixPtr up_;           // [hidden, latent]
  kernels::MatrixPtr shared_down_;  // [hidden, shared width]
  std::vector<kernels::ExpertWeights> experts_;
};

}  // namespace

FfnScratch::FfnScratch(const ModelConfig& config, size_t max_rows) {
  const MixtureColumns columns(config);
  const size_t dense = config.ffn.dense_width;
  in = RowBuffer(max_rows, std::max(columns.total, 2 * dense));
  inner = RowBuffer(max_rows, std::max(columns.shared_width, dense));
  mixed = RowBuffer(max_rows, columns.routed_width);
  if (config.ffn.latent_norm) normed = RowBuffer(max_rows, columns.routed_width);
  shared = RowBuffer(max_rows, config.hidden);
}

std::unique_ptr<const FfnLayer> load_ffn_layer(const ModelConfig& config, PackedWeights& weights,
                                               uint32_t layer, const std::string& name) {
  if (config.is_moe(layer))
    return std::make_unique<MixtureLayer>(config, weights, name + "block_sparse_moe.");
  return std::make_unique<DenseLayer>(config, weights, name + "mlp.");
}

}  // namespace runtime
