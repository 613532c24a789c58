// Adapters beside a base: the forward, training runs, and the files.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/adapter/adapter.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/train/adapter_trainer.hpp"
#include "runtime/train/adapter_training.hpp"
#include "runtime/weights.hpp"
#include "tests/support/merged_adapter.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/resumed_runs.hpp"
#include "tests/support/small_configs.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/toy_documents.hpp"

namespace {

using runtime::Adapter;
using support::bytes_of;
using support::TemporaryDirectory;
using support::ToyDocuments;

runtime::TrainingBatch some_rows(uint32_t vocab) {
  runtime::TrainingBatch batch;
  for (int i = 0; i < 50; ++i) {
    batch.tokens.push_back(i * 7 % static_cast<int>(vocab));
    batch.targets.push_back((i * 5 + 3) % static_cast<int>(vocab));
    batch.weights.push_back(1);
  }
  batch.sequences = {{0, 31}, {31, 19}};
  return batch;
}

std::vector<float> losses(const runtime::ModelConfig& config, const runtime::WeightSource& weights,
                          const runtime::TrainingBatch& batch, const Adapter* adapter) {
  const auto ops = kernels::make_cpu_ops(1);
  runtime::ModelOptions options;
  options.max_rows = 64;
  const runtime::HybridNetwork network(config, weights, *ops, options);
  runtime::TrainingWorker worker(config, options);
  std::unique_ptr<const runtime::NetworkAdapter> packed;
  if (adapter != nullptr) {
    const runtime::AdapterParameters<float> parameters(
        config, adapter->layout, adapter->settings.scale(), adapter->factors.data(), nullptr);
    packed = std::make_unique<runtime::NetworkAdapter>(parameters, *ops);
  }
  const auto result = worker.evaluate(network, batch, packed.get());
  return {result.row_loss.begin(), result.row_loss.end()};
}

// Factors of some size, which move the losses.
void fill(Adapter& adapter) {
  adapter.initialise(5);
  for (size_t i = 0; i < adapter.factors.size(); ++i)
    if (adapter.factors[i] == 0) adapter.factors[i] = 0.03f * static_cast<float>(i % 7) - 0.09f;
}

runtime::AdapterTrainingOptions small_run(const std::string& directory) {
  runtime::AdapterTrainingOptions options;
  options.model = support::random_model("tiny-k3");  // with MXFP4 experts
  options.directory = directory;
  options.adapter = {.rank = 4, .alpha = 8};
  options.trainer.learning_rate = {.rate = 1e-2, .last_share = 1, .warmup_steps = 2, .steps = 6};
  options.trainer.rows = 96;
  options.batch.sequence_length = 48;
  options.checkpoint_every = 0;
  return options;
}

}  // namespace

TEST_CASE("An adapter whose B is zero leaves every bit of the base's forward",
          "[runtime][train][adapter]") {
  const std::string directory = support::random_model(GENERATE("tiny-k3", "tiny-linear"));
  const auto config = runtime::ModelConfig::load(directory);
  const auto weights = runtime::WeightsFile::load(directory);
  const auto batch = some_rows(config.vocab);
  Adapter adapter(config, {.rank = 4});
  adapter.initialise(1);
  const auto base = losses(config, weights, batch, nullptr);
  CHECK(losses(config, weights, batch, &adapter) == base);
  fill(adapter);
  const auto adapted = losses(config, weights, batch, &adapter);
  CHECK(std::none_of(adapted.begin(), adapted.end(), [](float x) { return std::isnan(x); }));
  CHECK(adapted != base);
}

TEST_CASE("A forward with an adapter is that of merged weights", "[runtime][train][adapter]") {
  support::SmallNetwork small;
  small.k3 = GENERATE(true, false);
  if (!small.k3) small.q_lora = small.latent = 0;
  const auto config = small.config();
  runtime::ParameterStore store(config, false), merged(config, false);
  store.initialise(3);
  kernels::cpu::ThreadPool pool(1);
  store.refresh(pool);
  Adapter adapter(config, {.rank = 3, .alpha = 4});
  fill(adapter);
  const size_t size = store.layout().size();
  const auto values = support::merge_adapter<float>(
      store.layout(), {store.values(), store.values() + size}, adapter.layout, adapter.factors,
      adapter.settings.scale());
  std::copy(values.begin(), values.end(), merged.values());
  const auto batch = some_rows(config.vocab);
  const auto expected = losses(config, merged, batch, nullptr);
  const auto found = losses(config, store, batch, &adapter);
  const auto base = losses(config, store, batch, nullptr);
  float error = 0, moved = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::fabs(found[i] - expected[i]));
    moved = std::max(moved, std::fabs(found[i] - base[i]));
  }
  CHECK(error < 2e-5f);
  CHECK(moved > 1e-2f);
}

TEST_CASE("The first step moves every B, the second every A, and nothing moves the base",
          "[runtime][train][adapter]") {
  const std::string directory = support::random_model("tiny-k3");
  const auto config = runtime::ModelConfig::load(directory);
  const auto base = runtime::WeightsFile::load(directory);
  const uint64_t digest = base.digest();
  Adapter adapter(config, {.rank = 4, .alpha = 8});
  adapter.initialise(1);
  auto options = small_run("").trainer;
  options.weight_decay = 0;
  options.shards = 1;
  runtime::AdapterTrainer trainer(config, base, adapter, options);
  const auto count_moved = [&](const char* factor, const std::vector<float>& before) {
    size_t moved = 0;
    for (const runtime::Parameter& p : adapter.layout.all()) {
      const auto at = adapter.factors.begin() + static_cast<long>(p.offset);
      moved += p.name.ends_with(factor) &&
               !std::equal(at, at + static_cast<long>(p.count),
                           before.begin() + static_cast<long>(p.offset));
    }
    return moved;
  };
  const auto batch = some_rows(config.vocab);
  const size_t modules = adapter.layout.all().size() / 2;
  auto before = adapter.factors;
  trainer.step({batch});
  CHECK(count_moved(".lora_B", before) == modules);
  CHECK(count_moved(".lora_A", before) == 0);  // its gradient is zero as long as B is
  before = adapter.factors;
  trainer.step({batch});
  CHECK(count_moved(".lora_A", before) == modules);
  CHECK(base.digest() == digest);
}

TEST_CASE("A run of an adapter is the same to the byte when resumed or on one thread",
          "[runtime][train][adapter]") {
  const ToyDocuments documents(40, 512, 2);
  const TemporaryDirectory directory;
  std::ostringstream progress;
  auto options = small_run(directory.path());
  const auto first = support::check_resumed_runs(
      options, directory,
      {"/checkpoint.safetensors", "/loss.csv", "/adapter/adapter_model.safetensors"}, documents,
      [&](const auto& run, const ToyDocuments* held_out) {
        return runtime::train_adapter(run, documents, held_out, progress);
      });
  CHECK(first.steps == 6);
  CHECK(first.base_before == first.base_after);
  options.adapter.alpha = 16;
  CHECK_THROWS_WITH(runtime::train_adapter(options, documents, nullptr, progress),
                    Catch::Matchers::Contains("belongs to another run"));
  const ToyDocuments foreign(4, 5000, 2);
  CHECK_THROWS_WITH(runtime::train_adapter(options, foreign, nullptr, progress),
                    Catch::Matchers::Contains("holds token"));
}

TEST_CASE("An adapter is written as PEFT writes one, and read back to the bit",
          "[runtime][adapter]") {
  const auto config = runtime::ModelConfig::load(support::random_model("tiny-k3"));
  Adapter adapter(config, {.rank = 4, .alpha = 8});
  fill(adapter);
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  runtime::save_adapter(path, adapter, {"some/base", "language_model."});
  const Adapter read = runtime::load_adapter(path, config);
  CHECK(read.factors == adapter.factors);
  CHECK(read.settings.targets == adapter.settings.targets);
  CHECK(read.settings.scale() == 2);

  const runtime::SafeTensorsFile file(path + "/adapter_model.safetensors");
  const std::string layers = "base_model.model.language_model.model.layers.";
  const auto* a = file.find(layers + "0.self_attn.o_proj.lora_A.weight");
  REQUIRE(a != nullptr);
  CHECK(a->shape[0] == 4);
  const auto* gate = file.find(layers + "0.mlp.gate_proj.lora_A.weight");
  const auto* up = file.find(layers + "0.mlp.up_proj.lora_A.weight");
  REQUIRE((gate != nullptr && up != nullptr));
  CHECK(std::equal(gate->data.begin(), gate->data.end(), up->data.begin(), up->data.end()));
  const auto* shared = file.find(layers + "1.block_sparse_moe.experts.w1.lora_A.weight");
  REQUIRE(shared != nullptr);
  CHECK(shared->shape[0] == 1);  // one for all experts
  const auto* own = file.find(layers + "1.block_sparse_moe.experts.w1.lora_B.weight");
  REQUIRE(own != nullptr);
  CHECK(own->shape[0] == config.ffn.experts);
}

TEST_CASE("A directory that is no adapter of the model is refused by file and field",
          "[runtime][adapter]") {
  using Catch::Matchers::Contains;
  const auto config = runtime::ModelConfig::load(support::random_model("tiny-k3"));
  Adapter adapter(config, {.rank = 4, .targets = {"o_proj", "w2"}});
  const TemporaryDirectory directory;
  const std::string path = directory.path(), settings = path + "/adapter_config.json";
  runtime::save_adapter(path, adapter, {"base", ""});
  const auto good = boost::json::parse(bytes_of(settings)).as_object();
  const auto message = [&](const char* field, const boost::json::value& value) {
    auto changed = good;
    changed[field] = value;
    std::ofstream(settings) << boost::json::serialize(changed);
    try {
      runtime::load_adapter(path, config);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  CHECK(message("r", 4) == "loaded");
  CHECK_THAT(message("r", 0), Contains(settings) && Contains("r"));
  CHECK_THAT(message("r", 8), Contains("o_proj.lora_A.weight") && Contains("has shape [4, "));
  CHECK_THAT(message("peft_type", "IA3"), Contains("peft_type"));
  CHECK_THAT(message("use_dora", true), Contains("use_dora"));
  CHECK_THAT(message("rank_pattern", boost::json::object{{"o_proj", 2}}), Contains("rank_pattern"));
  CHECK_THAT(message("target_modules", boost::json::array{"q_proj"}),
             Contains(settings) && Contains("\"q_proj\" is none of"));
  CHECK_THAT(message("target_modules", boost::json::array{"o_proj", "w1", "w2"}),
             Contains("adapter_model.safetensors") && Contains("experts.w1.lora_A.weight is missing"));
  CHECK_THAT(message("target_modules", boost::json::array{"o_proj"}),
             Contains("experts.w2.lora_A.weight belongs to no target module"));
}
