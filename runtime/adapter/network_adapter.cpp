#include "runtime/adapter/network_adapter.hpp"

#include <map>
#include <memory>
#include <utility>

namespace runtime {

namespace {

// Packs the factors of one layer; a factor that several modules share is packed once.
class LayerPacker {
 public:
  LayerPacker(const LayerAdapterWeights<float>& weights, kernels::Ops& ops)
      : weights_(weights), ops_(ops) {}

  kernels::LowRank pack(const LowRankWeight<float>& w) {
    if (!w) return {};
    return {matrix(w.a.value, weights_.rank, w.k, 1), matrix(w.b.value, w.n, weights_.rank,
                                                             weights_.scale)};
  }

 private:
  std::shared_ptr<const kernels::Matrix> matrix(const float* values, size_t n, size_t k,
                                                float scale) {
    auto& packed = packed_[values];
    if (packed != nullptr) return packed;
    scaled_.assign(values, values + n * k);
    for (float& value : scaled_) value *= scale;
    kernels::MatrixView view;
    view.data = scaled_.data();
    view.n = n;
    view.k = k;
    view.stride_n = k;
    packed = ops_.pack(view);
    return packed;
  }

  const LayerAdapterWeights<float>& weights_;
  kernels::Ops& ops_;
  std::map<const float*, std::shared_ptr<const kernels::Matrix>> packed_;
  std::vector<float> scaled_;
};

}  // namespace

NetworkAdapter::NetworkAdapter(const AdapterParameters<float>& parameters, kernels::Ops& ops) {
  for (const LayerAdapterWeights<float>& weights : parameters.layers()) {
    LayerPacker packer(weights, ops);
    LayerAdapter layer;
    layer.out = packer.pack(weights.out);
    layer.query = packer.pack(weights.query);
    layer.latent = packer.pack(weights.latent);
    layer.gate_up = packer.pack(weights.gate_up);
    layer.down = packer.pack(weights.down);
    for (const auto& expert : weights.experts)
      layer.experts.push_back({packer.pack(expert.w1), packer.pack(expert.w3),
                               packer.pack(expert.w2)});
    layers_.push_back(std::move(layer));
  }
}

}  // namespace runtime
