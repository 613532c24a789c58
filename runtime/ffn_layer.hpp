// The feed-forward half of a layer: a dense gated MLP, or a mixture of experts in a latent space
// beside shared experts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/adapter/network_adapter.hpp"
#include "runtime/aligned_floats.hpp"
#include "runtime/model_config.hpp"
#include "runtime/packed_weights.hpp"

namespace runtime {

// Scratch that all feed-forward layers of a model share.
struct FfnScratch {
  RowBuffer in;  // [rows, latent z | shared gate | shared up | router logits], or [rows, gate | up]
  RowBuffer inner;   // [rows, width of the shared or dense MLP]
  RowBuffer mixed;   // [rows, latent or hidden]: sum of the experts
  RowBuffer normed;  // [rows, latent]: its norm; only where there is one
  RowBuffer shared;  // [rows, hidden]
  kernels::Routing routing;
  FfnScratch(const ModelConfig& config, size_t max_rows);
};

class FfnLayer {
 public:
  virtual ~FfnLayer() = default;
  // x: [rows, hidden] normed input; out: [rows, hidden], must not alias x.
  virtual void forward(kernels::Ops& ops, kernels::Rows x, size_t rows, FfnScratch& scratch,
                       kernels::MutableRows out, const LayerAdapterUse& adapter) const = 0;
};

// `name` ends with "layers.N."
std::unique_ptr<const FfnLayer> load_ffn_layer(const ModelConfig& config, PackedWeights& weights,
                                               uint32_t layer, const std::string& name);

}  // namespace runtime
