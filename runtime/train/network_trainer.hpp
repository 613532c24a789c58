// Training of a whole network: every step packs the parameters into the serving network.
#pragma once

#include <memory>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/hybrid_network.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

class NetworkTrainer final : public Trainer {
 public:
  // `config` and `parameters` must outlive the trainer. The parameters' values are refreshed.
  NetworkTrainer(const ModelConfig& config, ParameterStore& parameters,
                 const TrainerOptions& options);

 private:
  void pack() override;
  double learn(TrainingWorker& worker, size_t shard, const TrainingBatch& batch) override;
  TrainingWorker::Result measure(TrainingWorker& worker, const TrainingBatch& batch) override;
  void refresh() override { parameters_.refresh(pool_); }
  void moved() override;
  bool rounds(const Parameter& parameter) const override;
  void balance_experts();

  ParameterStore& parameters_;
  std::unique_ptr<kernels::Ops> packing_ops_;
  std::unique_ptr<const HybridNetwork> network_;
  std::vector<NetworkParameters<float>> views_;  // one per shard
};

}  // namespace runtime
