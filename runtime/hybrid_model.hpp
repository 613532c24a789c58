// The K3 / Kimi-Linear model as the engine runs it: a network and the scratch of its one forward at
// a time. Invariant: all weights are packed and all scratch allocated at construction; a forward
// allocates nothing large.
#pragma once

#include <memory>
#include <utility>

#include "runtime/hybrid_network.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"

namespace runtime {

class HybridModel final : public Model {
 public:
  // `ops` must outlive the model; `weights` is needed only during the call. Throws
  // std::runtime_error naming the tensor.
  HybridModel(const ModelConfig& config, const WeightSource& weights, kernels::Ops& ops,
              const ModelOptions& options)
      : vocab_(config.vocab),
        ops_(ops),
        network_(config, weights, ops, options),
        work_(config, options.max_rows) {}

  // From now on every row runs with the adapter, made with the same Ops.
  void adapt(std::unique_ptr<const NetworkAdapter> adapter) { adapter_ = std::move(adapter); }

  uint32_t vocab_size() const override { return vocab_; }
  CacheGeometry geometry() const override { return network_.geometry(); }
  uint64_t weight_bytes() const override { return network_.weight_bytes(); }
  void forward(const ForwardBatch& batch, const CacheMemory& memory) override {
    network_.forward(ops_, batch, memory, work_, adapter_.get());
  }
  void logits(size_t first, size_t count, float* out) override {
    network_.logits(ops_, work_, first, count, out);
  }

 private:
  uint32_t vocab_;
  kernels::Ops& ops_;
  HybridNetwork network_;
  Workspace work_;
  std::unique_ptr<const NetworkAdapter> adapter_;  // null: the base alone
};

}  // namespace runtime
