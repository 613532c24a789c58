// The K3 / Kimi-Linear model: embedding, layers of KDA or MLA with their feed-forward halves,
// readout and head. Invariant: all weights are packed and all scratch allocated at construction; a
// forward allocates nothing large.
#pragma once

#include <memory>
#include <vector>

#include "runtime/ffn_layer.hpp"
#include "runtime/kda_layer.hpp"
#include "runtime/mla_layer.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/residual_stream.hpp"
#include "runtime/state_layout.hpp"
#include "runtime/weights.hpp"

namespace runtime {

// Scratch of one forward, shared by all layers.
struct Workspace {
  ResidualStream stream;
  RowBuffer normed;    // [rows, hidden] sublayer input
  RowBuffer sublayer;  // [rows, hidden] sublayer output
  RowBuffer head;      // [logit rows, hidden] lm_head input, kept until the next forward
  KdaScratch kda;
  MlaScratch mla;
  FfnScratch ffn;
  Workspace(const ModelConfig& config, size_t max_rows);
};

class HybridModel final : public Model {
 public:
  // `ops` must outlive the model; `file` is needed only during the call. Throws std::runtime_error
  // naming the tensor.
  HybridModel(const ModelConfig& config, const WeightsFile& file, kernels::Ops& ops,
              const ModelOptions& options);

  uint32_t vocab_size() const override { return config_.vocab; }
  CacheGeometry geometry() const override;
  uint64_t weight_bytes() const override { return weight_bytes_; }
  void forward(const ForwardBatch& batch, const CacheMemory& memory) override;
  void logits(size_t first, size_t count, float* out) override;

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
  void read_out(const ForwardBatch& batch);

  ModelConfig config_;
  ModelOptions options_;
  kernels::Ops& ops_;
  StateLayout layout_;
  std::vector<std::byte> embedding_bytes_;  // [vocab, hidden] in the file's dtype
  kernels::MatrixView embedding_;
  std::vector<Layer> layers_;
  std::vector<float> output_norm_;  // [hidden]
  kernels::MatrixPtr lm_head_;      // [vocab, hidden]
  uint64_t weight_bytes_ = 0;
  Workspace work_;
  size_t head_rows_ = 0;  // of work_.head that the last forward filled
};

}  // namespace runtime
