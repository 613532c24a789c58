// Training of an adapter beside a frozen base: the base is packed once, as its file stores it
// (MXFP4 included), and has no gradients; the factors are fp32 and packed every step.
#pragma once

#include <memory>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/adapter/adapter.hpp"
#include "runtime/adapter/network_adapter.hpp"
#include "runtime/hybrid_network.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

class AdapterTrainer final : public Trainer {
 public:
  // `config` and `adapter` must outlive the trainer, `base` the call. Throws std::runtime_error
  // naming the base's tensor that is wrong.
  AdapterTrainer(const ModelConfig& config, const WeightSource& base, Adapter& adapter,
                 const TrainerOptions& options);

 private:
  void pack() override;
  double learn(TrainingWorker& worker, size_t shard, const TrainingBatch& batch) override;
  TrainingWorker::Result measure(TrainingWorker& worker, const TrainingBatch& batch) override;
  void refresh() override {}  // the forward sees the masters

  std::unique_ptr<kernels::Ops> packing_ops_;
  HybridNetwork network_;
  ParameterStore base_;  // its masters are what the backward multiplies by
  NetworkParameters<float> frozen_;
  std::vector<AdapterParameters<float>> views_;  // one per shard
  std::unique_ptr<const NetworkAdapter> packed_;
};

}  // namespace runtime
