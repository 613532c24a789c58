// Forward and backward of one shard of a batch on one thread: the serving forward with its
// intermediate rows kept, then the gradients. Invariant: everything large is allocated once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/train/gradient_ops.hpp"
#include "runtime/hybrid_network.hpp"
#include "runtime/train/network_backward.hpp"
#include "runtime/train/training_batch.hpp"

namespace runtime {

class TrainingWorker {
 public:
  // `config` must outlive the worker.
  TrainingWorker(const ModelConfig& config, const ModelOptions& options);

  // The loss of each row, unweighted: the cross entropy of its target in nats; rows of weight 0 get
  // 0. Valid until the next call.
  struct Result {
    double loss = 0;     // sum over rows of weight * loss
    double right = 0;    // sum of weights where the target has the largest logit; evaluate's only
    std::span<const float> row_loss;
  };
  // Adds the gradients of the batch's weighted loss to those of `parameters`.
  Result train(const HybridNetwork& network, const NetworkParameters<float>& parameters,
               const TrainingBatch& batch);
  // The same for an adapter's factors, twice the same ones; `parameters` are frozen.
  struct Adapter {
    const NetworkAdapter& packed;
    const AdapterParameters<float>& parameters;
  };
  Result train(const HybridNetwork& network, const NetworkParameters<float>& parameters,
               const TrainingBatch& batch, const Adapter& adapter);
  // The losses alone. adapter may be null.
  Result evaluate(const HybridNetwork& network, const TrainingBatch& batch,
                  const NetworkAdapter* adapter = nullptr);
  // How often each expert of a layer was chosen by the last batch, [experts]; zero if not a
  // mixture.
  std::vector<uint32_t> expert_load(uint32_t layer);
  const PartTimer& timer() const { return timer_; }  // of all calls

 private:
  Result backward(const HybridNetwork& network, const NetworkParameters<float>& parameters,
                  const TrainingBatch& batch, const AdapterParameters<float>* adapter);
  void forward(const HybridNetwork& network, const TrainingBatch& batch,
               const NetworkAdapter* adapter);
  void reserve_cache(const CacheGeometry& geometry, const TrainingBatch& batch);
  Tape<float> tape(const TrainingBatch& batch, const float* embedding);
  Result head(const HybridNetwork& network, const NetworkParameters<float>* parameters,
              const TrainingBatch& batch);

  const ModelConfig& config_;
  ModelOptions options_;
  std::unique_ptr<kernels::Ops> ops_;
  std::unique_ptr<kernels::GradientOps<float>> gradient_ops_;
  PartTimer timer_;
  Workspace work_;
  NetworkBackward<float> backward_;
  std::vector<float> states_, pages_;  // of the batch's sequences, each empty at first
  CacheMemory memory_;
  std::vector<kernels::Segment> segments_;
  std::vector<uint32_t> page_table_, wanted_;  // wanted: rows with a weight
  RowBuffer embedded_, logits_, dhead_, dwanted_;
  std::vector<float> row_loss_, wanted_weight_, wanted_loss_;
  std::vector<int32_t> wanted_target_;
};

}  // namespace runtime
