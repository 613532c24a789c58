// Pretraining of a network: every step packs the parameters into the serving network, runs each
// shard of the batch forward and backward, and moves the masters by AdamW.
//
// Deterministic: a step depends on parameters, moments and batches alone. The batch is always cut
// into the same shards, whose gradients are summed in order; threads only decide who computes one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "kernels/ops.hpp"
#include "kernels/train/optimizer.hpp"
#include "runtime/hybrid_network.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/training_batch.hpp"
#include "runtime/train/training_worker.hpp"

namespace runtime {

// Linear warm-up, then a cosine down to `last_share` of the rate at the last step.
struct LearningRate {
  double rate = 3e-3, last_share = 0.05;
  uint64_t warmup_steps = 50, steps = 1000;
  double at(uint64_t step) const;  // of step 0, 1, ...
};

struct TrainerOptions {
  LearningRate learning_rate;
  float weight_decay = 0.1f;  // of matrices
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;
  float clip = 1.0f;               // largest norm of the gradient of the mean loss
  float balance_rate = 1e-3f;      // how far an expert's bias moves a step
  size_t shards = 2, rows = 1024;  // of a batch; rows of a shard
  unsigned threads = 2;
};

struct StepReport {
  double loss = 0;       // nats per learned token
  double grad_norm = 0;  // of the mean loss, before clipping
  double rate = 0;
  uint64_t tokens = 0;  // rows of the batch
  bool skipped = false;  // loss or gradient was not finite: nothing moved
};

class Trainer {
 public:
  // `config` and `parameters` must outlive the trainer. The parameters' values are refreshed.
  Trainer(const ModelConfig& config, ParameterStore& parameters, const TrainerOptions& options);

  StepReport step(const std::vector<TrainingBatch>& shards);  // options.shards of them
  // Mean loss in nats over the learned tokens, and how many there were.
  struct Evaluation {
    double loss = 0, tokens = 0;
  };
  Evaluation evaluate(const std::vector<TrainingBatch>& batches);
  // Processor seconds of all shards, part by part.
  std::array<double, kNetworkParts> seconds() const;

  // What a checkpoint keeps beside the masters.
  uint64_t steps_done() const { return steps_done_; }
  uint64_t steps_skipped() const { return steps_skipped_; }
  float* first_moments() { return first_.data(); }  // [layout().size()]
  float* second_moments() { return second_.data(); }
  void resume(uint64_t steps_done, uint64_t steps_skipped);  // masters and moments are set already

 private:
  std::unique_ptr<HybridNetwork> pack();
  double reduce();
  void apply(double rate, double tokens, double grad_norm);
  void forget_gradients();
  void balance_experts();

  const ModelConfig& config_;
  ParameterStore& parameters_;
  TrainerOptions options_;
  ModelOptions model_options_;
  kernels::cpu::ThreadPool pool_;
  std::unique_ptr<kernels::Ops> packing_ops_;
  std::vector<std::unique_ptr<TrainingWorker>> workers_;  // one per shard
  std::vector<std::vector<float>> grads_;                 // one per shard
  std::vector<NetworkParameters<float>> views_;           // one per shard
  std::vector<float> first_, second_;
  std::vector<double> squares_;  // of each parameter's gradient
  uint64_t steps_done_ = 0, steps_skipped_ = 0;
};

}  // namespace runtime
