#include "runtime/train/adapter_trainer.hpp"

namespace runtime {

AdapterTrainer::AdapterTrainer(const ModelConfig& config, const WeightSource& base,
                               Adapter& adapter, const TrainerOptions& options)
    : Trainer(config,
              {adapter.layout.all(), adapter.layout.size(), adapter.factors.data(),
               adapter.factors.data()},
              options),
      packing_ops_(kernels::make_cpu_ops(options.threads)),
      network_(config, base, *packing_ops_, model_options_),
      base_(config, false),
      frozen_(config, base_.layout(), base_.masters(), nullptr) {
  base_.load(base);
  for (size_t i = 0; i < options.shards; ++i) {
    views_.emplace_back(config, adapter.layout, adapter.settings.scale(), adapter.factors.data(),
                        grads(i));
  }
}

void AdapterTrainer::pack() {
  packed_ = std::make_unique<NetworkAdapter>(views_.front(), *packing_ops_);
}

double AdapterTrainer::learn(TrainingWorker& worker, size_t shard, const TrainingBatch& batch) {
  return worker.train(network_, frozen_, batch, {*packed_, views_[shard]}).loss;
}

TrainingWorker::Result AdapterTrainer::measure(TrainingWorker& worker,
                                                const TrainingBatch& batch) {
  return worker.evaluate(network_, batch, packed_.get());
}

}  // namespace runtime
