// The weights of a K3 / Kimi-Linear model and its forward pass: embedding, layers of KDA or MLA
// with their feed-forward halves, readout and head. Invariant: immutable after construction, so
// several forwards, each with its own Ops and workspace, may run side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/adapter/network_adapter.hpp"
#include "runtime/ffn_layer.hpp"
#include "runtime/kda_layer.hpp"
#include "runtime/mla_layer.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/part_timer.hpp"
#include "runtime/residual_stream.hpp"
#include "runtime/state_layout.hpp"

namespace runtime {

// Scratch of one forward, allocated once. Layers share it, unless what they computed is to be kept
// for a backward pass: then each has its own.
class Workspace {
 public:
  enum class Keep { kNothing, kLayers };
  // The input of a sublayer and what it computes, [rows, hidden] each. Layer L's attention is
  // sublayer 2 L, its feed-forward half 2 L + 1.
  struct Sublayer {
    RowBuffer normed, out;
  };

  Workspace(const ModelConfig& config, size_t max_rows, Keep keep = Keep::kNothing);

  Sublayer& sublayer(size_t index) { return sublayers_[index % sublayers_.size()]; }
  KdaScratch& kda(size_t layer) { return kda_[layer % kda_.size()]; }
  MlaScratch& mla(size_t layer) { return mla_[layer % mla_.size()]; }
  FfnScratch& ffn(size_t layer) { return ffn_[layer % ffn_.size()]; }

  ResidualStream stream;
  RowBuffer head;        // [logit rows, hidden] lm_head input, kept until the next forward
  size_t head_rows = 0;  // of head that the last forward filled
  AdapterScratch adapter;
  PartTimer* timer = nullptr;

 private:
  std::vector<Sublayer> sublayers_;
  std::vector<KdaScratch> kda_;
  std::vector<MlaScratch> mla_;
  std::vector<FfnScratch> ffn_;
};

class HybridNetwork {
 public:
  // `ops` packs the weights and must outlive the network; `weights` is needed only during the call.
  // Throws std::runtime_error naming the tensor.
  HybridNetwork(const ModelConfig& config, const WeightSource& weights, kernels::Ops& ops,
                const ModelOptions& options);

  CacheGeometry geometry() const;
  uint64_t weight_bytes() const { return weight_bytes_; }
  // As Model::forward and Model::logits; `work` holds at least the batch's rows. adapter: of the
  // same model, for all rows; null: the base alone.
  void forward(kernels::Ops& ops, const ForwardBatch& batch, const CacheMemory& memory,
               Workspace& work, const NetworkAdapter* adapter = nullptr) const;
  void logits(kernels::Ops& ops, Workspace& work, size_t first, size_t count, float* out) const;

 private:
  struct Layer {
    std::vector<float> attention_norm, ffn_norm;  // [hidden]
    std::unique_ptr<const KdaLayer> kda;          // exactly one of kda and mla
    std::unique_ptr<const MlaLayer> mla;
    std::unique_ptr<const FfnLayer> ffn;
  };
  Layer load_layer(PackedWeights& weights, uint32_t layer) const;
  void load_embedding(PackedWeights& weights);
  void load_head(PackedWeights& weights);
  void read_out(kernels::Ops& ops, const ForwardBatch& batch, Workspace& work) const;

  ModelConfig config_;
  ModelOptions options_;
  StateLayout layout_;
  ResidualGains gains_;
  std::vector<std::byte> embedding_bytes_;  // [vocab, hidden] in the source's dtype
  kernels::MatrixView embedding_;
  std::vector<Layer> layers_;
  std::vector<float> output_norm_;  // [hidden]
  kernels::MatrixPtr lm_head_;      // [vocab, hidden]
  uint64_t weight_bytes_ = 0;
};

}  // namespace runtime
