#include "runtime/train/adapter_training.hpp"

#include <cstdio>
#include <stdexcept>

#include "runtime/adapter/adapter.hpp"
#include "runtime/train/adapter_trainer.hpp"
#include "runtime/weights.hpp"

namespace runtime {

namespace {

// A dataset of another tokenizer would not fit.
void check_tokens(const Documents* documents, const ModelConfig& config) {
  for (size_t i = 0; documents != nullptr && i < documents->count(); ++i) {
    for (const uint16_t token : documents->document(i).tokens) {
      if (token < config.vocab) continue;
      throw std::runtime_error("the dataset's document " + std::to_string(i) + " holds token " +
                               std::to_string(token) + "; this model has " +
                               std::to_string(config.vocab));
    }
  }
}

// What a resumed run must have in common with the one that stopped.
std::string setup_of(const Adapter& adapter, uint64_t base) {
  char text[96];
  std::snprintf(text, sizeof text, "adapter of base %016llx, rank %u, alpha %.6g,",
                static_cast<unsigned long long>(base), adapter.settings.rank,
                adapter.settings.alpha);
  std::string setup = text;
  for (const std::string& target : adapter.settings.targets) setup += " " + target;
  return setup;
}

}  // namespace

// As Kimi-K3's adapters are trained, but for the rate: small models bear 200 times as much.
AdapterTrainingOptions::AdapterTrainingOptions() {
  trainer.learning_rate = {.rate = 2e-3, .last_share = 0.1, .warmup_steps = 20, .steps = 400};
  trainer.beta2 = 0.98f;
  batch.example_share = 1;
}

AdapterTrainingResult train_adapter(const AdapterTrainingOptions& options,
                                    const Documents& documents, const Documents* held_out,
                                    std::ostream& progress) {
  const ModelConfig config = ModelConfig::load(options.model);
  check_tokens(&documents, config);
  check_tokens(held_out, config);
  const WeightsFile base = WeightsFile::load(options.model);
  Adapter adapter(config, options.adapter);
  AdapterTrainer trainer(config, base, adapter, options.trainer);
  AdapterTrainingResult result;
  result.parameters = adapter.layout.size();
  result.base_before = base.digest();
  const TrainingSubject subject = {
      trainer, setup_of(adapter, result.base_before), [&] { adapter.initialise(options.seed); },
      [&] {
        save_adapter(options.directory + "/adapter", adapter, {options.model, base.prefix()});
      }};
  static_cast<RunResult&>(result) = run_training(options, subject, documents, held_out, progress);
  result.base_after = WeightsFile::load(options.model).digest();
  return result;
}

}  // namespace runtime
