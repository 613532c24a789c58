// Training by steps: each runs the shards of a batch forward and backward and moves fp32 masters by
// AdamW. What is learnt (a network's parameters, or an adapter's factors) is the derived class's.
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
#include "kernels/train/optimizer.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/parameter_layout.hpp"
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

// What is learnt: its parameters, and their numbers. values: what the forward sees.
struct TrainedNumbers {
  const std::vector<Parameter>& parameters;
  size_t size = 0;
  float *masters = nullptr, *values = nullptr;  // [size]
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  StepReport step(const std::vector<TrainingBatch>& shards);  // options.shards of them
  // Mean loss in nats over the learned tokens, how many there were, and the share of them (all by
  // weight) that the network finds the likeliest.
  struct Evaluation {
    double loss = 0, tokens = 0, right = 0;
  };
  Evaluation evaluate(const std::vector<TrainingBatch>& batches);
  // Processor seconds of all shards, part by part.
  std::array<double, kNetworkParts> seconds() const;

  // What a checkpoint keeps.
  const TrainedNumbers& numbers() const { return numbers_; }
  uint64_t steps_done() const { return steps_done_; }
  uint64_t steps_skipped() const { return steps_skipped_; }
  float* first_moments() { return first_.data(); }  // [numbers().size]
  float* second_moments() { return second_.data(); }
  void resume(uint64_t steps_done, uint64_t steps_skipped);  // masters and moments are set already

 protected:
  // `config` and the numbers must outlive the trainer.
  Trainer(const ModelConfig& config, const TrainedNumbers& numbers, const TrainerOptions& options);

  // Before the shards of a step or an evaluation: the values have changed.
  virtual void pack() = 0;
  // Adds the gradients of a batch's loss to `grads` of shard `shard`; returns the loss.
  virtual double learn(TrainingWorker& worker, size_t shard, const TrainingBatch& batch) = 0;
  virtual TrainingWorker::Result measure(TrainingWorker& worker,
                                         const TrainingBatch& batch) = 0;
  virtual void refresh() = 0;  // values from masters
  virtual void moved() {}      // the optimizer has changed masters and values
  // Whether the optimizer rounds a parameter's values to bf16.
  virtual bool rounds(const Parameter&) const { return false; }

  float* grads(size_t shard) { return grads_[shard].data(); }
  const ModelConfig& config_;
  TrainerOptions options_;
  ModelOptions model_options_;
  kernels::cpu::ThreadPool pool_;
  std::vector<std::unique_ptr<TrainingWorker>> workers_;  // one per shard

 private:
  double reduce();
  void apply(double rate, double tokens, double grad_norm);
  void forget_gradients();

  TrainedNumbers numbers_;
  std::vector<std::vector<float>> grads_;  // one per shard
  std::vector<float> first_, second_;
  std::vector<double> squares_;  // of each parameter's gradient
  uint64_t steps_done_ = 0, steps_skipped_ = 0;
};

}  // namespace runtime
