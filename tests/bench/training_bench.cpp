// Training throughput: tokens per core-second (user and system time of the whole process) of
// steps on random tokens, and where the time goes by kind of layer. With a rank: of an adapter on
// all modules beside the frozen network.
//   ./sluice bench training [preset] [steps] [threads] [rank]
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/process_cpu.hpp"
#include "runtime/checkpoint_presets.hpp"
#include "runtime/train/adapter_trainer.hpp"
#include "runtime/train/network_trainer.hpp"

namespace {

constexpr size_t kSequences = 8, kLength = 256;  // of a batch

runtime::TrainingBatch random_batch(std::mt19937& random, uint32_t vocab, size_t rows) {
  runtime::TrainingBatch batch;
  for (size_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(static_cast<int32_t>(random() % vocab));
    batch.targets.push_back(static_cast<int32_t>(random() % vocab));
    batch.weights.push_back(1);
    if (row % kLength == 0) batch.sequences.push_back({row, kLength});
  }
  return batch;
}

std::string load_average() {
  std::ifstream in("/proc/loadavg");
  std::string one;
  in >> one;
  return one;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string preset = argc > 1 ? argv[1] : "train-k3";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 10;
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
  const auto config = runtime::ModelConfig::parse(
      boost::json::serialize(runtime::preset_config(preset)), "preset " + preset);
  runtime::ParameterStore store(config, false);
  store.initialise(1);
  runtime::TrainerOptions options;
  options.threads = threads;
  options.rows = kSequences * kLength / options.shards;
  std::unique_ptr<runtime::Trainer> trainer =
      std::make_unique<runtime::NetworkTrainer>(config, store, options);
  std::unique_ptr<runtime::Adapter> adapter;
  if (argc > 4) {
    adapter = std::make_unique<runtime::Adapter>(
        config, runtime::AdapterSettings{.rank = static_cast<uint32_t>(std::atoi(argv[4]))});
    adapter->initialise(1);
    trainer = std::make_unique<runtime::AdapterTrainer>(config, store, *adapter, options);
  }
  std::mt19937 random(1);
  const auto step = [&] {
    std::vector<runtime::TrainingBatch> shards;
    for (size_t i = 0; i < options.shards; ++i)
      shards.push_back(random_batch(random, config.vocab, options.rows));
    return trainer->step(shards);
  };
  step();  // memory is touched
  const auto before = trainer->seconds();
  const double start = kernels::process_cpu_seconds();
  for (int i = 0; i < steps; ++i) step();
  const double cpu = kernels::process_cpu_seconds() - start;
  const auto tokens = static_cast<double>(steps * static_cast<int>(kSequences * kLength));
  std::printf("%s: %.2f M parameters to learn, batch %zu x %zu, %u threads, load average %s\n",
              preset.c_str(), static_cast<double>(trainer->numbers().size) * 1e-6, kSequences,
              kLength, threads, load_average().c_str());
  std::printf("%.0f tokens per core-second (%.1f us of processor time a token)\n", tokens / cpu,
              1e6 * cpu / tokens);
  double rest = cpu;
  const auto after = trainer->seconds();
  for (size_t i = 0; i < runtime::kNetworkParts; ++i) {
    const double seconds = after[i] - before[i];
    rest -= seconds;
    std::printf("  %-10s %6.1f us a token  %4.1f %%\n", runtime::kNetworkPartNames[i],
                1e6 * seconds / tokens, 100 * seconds / cpu);
  }
  std::printf("  %-10s %6.1f us a token  %4.1f %%\n", "optimizer", 1e6 * rest / tokens,
              100 * rest / cpu);
  return 0;
}
