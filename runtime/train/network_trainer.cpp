#include "runtime/train/network_trainer.hpp"

#include <string>

namespace runtime {

NetworkTrainer::NetworkTrainer(const ModelConfig& config, ParameterStore& parameters,
                               const TrainerOptions& options)
    : Trainer(config,
              {parameters.layout().all(), parameters.layout().size(), parameters.masters(),
               parameters.values()},
              options),
      parameters_(parameters),
      packing_ops_(kernels::make_cpu_ops(options.threads)) {
  for (size_t i = 0; i < options.shards; ++i)
    views_.emplace_back(config, parameters.layout(), parameters.values(), grads(i));
  refresh();
}

void NetworkTrainer::pack() {
  network_.reset();  // before the next one takes as much memory
  network_ = std::make_unique<HybridNetwork>(config_, parameters_, *packing_ops_, model_options_);
}

double NetworkTrainer::learn(TrainingWorker& worker, size_t shard, const TrainingBatch& batch) {
  return worker.train(*network_, views_[shard], batch).loss;
}

TrainingWorker::Result NetworkTrainer::measure(TrainingWorker& worker,
                                                const TrainingBatch& batch) {
  return worker.evaluate(*network_, batch);
}

// Quantised experts are rounded in moved(), not by the optimizer.
bool NetworkTrainer::rounds(const Parameter& parameter) const {
  const bool expert = parameters_.quantised() && parameter.precision == Precision::kExpert;
  return parameter.precision != Precision::kFloat && !expert;
}

void NetworkTrainer::moved() {
  balance_experts();
  parameters_.refresh_experts(pool_);
}

// Without an auxiliary loss (Wang et al. 2024): an expert chosen less often than the mean becomes
// easier to choose. The bias acts on the choice alone and has no gradient.
void NetworkTrainer::balance_experts() {
  if (options_.balance_rate == 0) return;
  for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
    if (!config_.is_moe(layer)) continue;
    std::vector<uint64_t> load(config_.ffn.experts);
    uint64_t total = 0;
    for (const auto& worker : workers_) {
      const auto one = worker->expert_load(layer);
      for (size_t i = 0; i < load.size(); ++i) load[i] += one[i];
    }
    for (const uint64_t one : load) total += one;
    const Parameter& bias = parameters_.layout().at(
        "model.layers." + std::to_string(layer) + ".block_sparse_moe.gate.e_score_correction_bias");
    for (size_t i = 0; i < load.size(); ++i) {
      const uint64_t scaled = load[i] * load.size();
      const float move = scaled == total ? 0.0f : options_.balance_rate;
      float& value = parameters_.masters()[bias.offset + i];
      value += scaled < total ? move : -move;
      parameters_.values()[bias.offset + i] = value;
    }
  }
}

}  // namespace runtime
