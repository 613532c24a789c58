// Training runs: the forward is the serving forward, and a run is exact.
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/hybrid_model.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/pretraining.hpp"
#include "runtime/train/network_trainer.hpp"
#include "runtime/weights.hpp"
#include "tests/support/plain_network.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/resumed_runs.hpp"
#include "tests/support/small_configs.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/toy_documents.hpp"

namespace {

using support::TemporaryDirectory;
using support::ToyDocuments;

std::vector<runtime::TrainingBatch> next_shards(runtime::BatchStream& stream, size_t count) {
  std::vector<runtime::TrainingBatch> shards;
  for (size_t i = 0; i < count; ++i) shards.push_back(stream.next());
  return shards;
}

runtime::TrainerOptions small_options() {
  runtime::TrainerOptions options;
  options.learning_rate = {.rate = 1e-2, .last_share = 0.1, .warmup_steps = 4, .steps = 60};
  options.rows = 96;
  return options;
}

runtime::PretrainingOptions tiny_run(const std::string& directory) {
  runtime::PretrainingOptions options;
  options.preset = "tiny-k3";
  options.directory = directory;
  options.trainer = small_options();
  options.trainer.learning_rate.steps = 6;
  options.batch.sequence_length = 48;
  options.checkpoint_every = 0;
  return options;
}

}  // namespace

TEST_CASE("Float gradients of a whole network are those of double", "[runtime][train]") {
  const bool k3 = GENERATE(true, false);
  support::SmallNetwork small;
  small.k3 = k3;
  if (!k3) small.q_lora = small.latent = 0;
  const runtime::ModelConfig config = small.config();
  runtime::ParameterStore store(config, false);
  store.initialise(3);
  kernels::cpu::ThreadPool pool(1);
  store.refresh(pool);
  const ToyDocuments documents(20, config.vocab, 5);
  runtime::BatchStream stream(documents, {.rows = 70, .sequence_length = 33});
  const runtime::TrainingBatch batch = stream.next();

  const auto ops = kernels::make_cpu_ops(1);
  runtime::ModelOptions options;
  options.max_rows = 96;
  const runtime::HybridNetwork network(config, store, *ops, options);
  runtime::TrainingWorker worker(config, options);
  const size_t size = store.layout().size();
  std::vector<float> grads(size);
  const runtime::NetworkParameters<float> view(config, store.layout(), store.values(),
                                               grads.data());
  const double loss = worker.train(network, view, batch).loss;

  const std::vector<double> values(store.values(), store.values() + size);
  std::vector<double> expected(size);
  const runtime::NetworkParameters<double> plain_view(config, store.layout(), values.data(),
                                                      expected.data());
  const std::vector<float> bias(config.ffn.experts, 0.0f);
  support::PlainNetwork<double> plain(config, plain_view, bias.data());
  auto logits = plain.forward(batch.tokens, batch.sequences);
  support::PlainGradientOps<double> plain_ops;
  std::vector<double> dhead(batch.rows() * config.hidden);
  const kernels::Grid<double> dhead_rows{dhead.data(), config.hidden};
  const double plain_loss = runtime::head_backward<double>(
      plain_ops, config,
      {batch.rows(), config.vocab, {logits.data(), config.vocab}, batch.targets, batch.weights,
       nullptr},
      plain.tape().head, plain_view.head, dhead_rows);
  runtime::NetworkBackward<double>(config, plain_ops).run(plain.tape(), plain_view, dhead_rows);

  CHECK(loss == Approx(plain_loss).epsilon(1e-5));
  for (const runtime::Parameter& p : store.layout().all()) {
    double largest = 0, error = 0;
    for (size_t i = p.offset; i < p.offset + p.count; ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      error = std::max(error, std::fabs(expected[i] - static_cast<double>(grads[i])));
    }
    INFO(p.name << ": largest " << largest);
    CHECK(error <= 2e-4 * largest + 1e-6);
  }
}

// The bytes of an exported file, served in pieces, give the logits of the training forward.
TEST_CASE("The trainer's forward is the server's, to the bit", "[runtime][train]") {
  const std::string preset = GENERATE("tiny-k3", "tiny-linear");
  const bool quantised = preset == "tiny-k3" && GENERATE(false, true);
  const TemporaryDirectory directory;
  auto options = tiny_run(directory.path());
  options.preset = preset;
  options.quantised = quantised;
  options.tokenizer = support::random_model(preset);
  options.trainer.learning_rate.steps = 2;
  const ToyDocuments documents(40, 512, 1);
  std::ostringstream progress;
  runtime::pretrain(options, documents, nullptr, progress);

  const std::string exported = directory.path() + "/model";
  const auto config = runtime::ModelConfig::load(exported);
  CHECK(config.end_ids == std::vector<runtime::TokenId>{257, 258});  // [EOS], <|end_of_msg|>
  const auto weights = runtime::WeightsFile::load(exported);
  const auto ops = kernels::make_cpu_ops(2);
  runtime::ModelOptions model_options;
  model_options.max_rows = 96;
  runtime::HybridModel model(config, weights, *ops, model_options);
  runtime::ParameterStore store(config, quantised);
  store.load(weights);
  kernels::cpu::ThreadPool pool(1);
  store.refresh(pool);
  const runtime::HybridNetwork network(config, store, *ops, model_options);
  runtime::TrainingWorker worker(config, model_options);
  runtime::TrainingBatch batch;
  for (int i = 0; i < 40; ++i) {
    batch.tokens.push_back(i * 7 % 500);
    batch.targets.push_back((i * 7 + 7) % 500);
    batch.weights.push_back(1);
  }
  batch.sequences = {{0, 40}};
  const auto losses = worker.evaluate(network, batch).row_loss;

  const auto geometry = model.geometry();
  std::vector<float> state(geometry.state_bytes / 4 + 32), page(geometry.page_bytes / 4 + 32);
  const auto aligned = [](std::vector<float>& memory) {
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return reinterpret_cast<std::byte*>((at + 63) / 64 * 64);
  };
  const runtime::CacheMemory memory{aligned(state), geometry.state_bytes, aligned(page),
                                    geometry.page_bytes};
  const std::vector<uint32_t> pages = {0};
  const auto gradient_ops = kernels::make_cpu_gradient_ops();
  std::vector<float> logits(config.vocab);
  uint32_t at = 0;
  for (const uint32_t piece : {1u, 1u, 13u, 1u, 24u}) {
    const std::vector<kernels::Segment> segments = {
        {.row_begin = 0, .row_count = piece, .position = at, .slot = 0, .page_begin = 0,
         .write_from = at}};
    std::vector<uint32_t> wanted(piece);
    for (uint32_t i = 0; i < piece; ++i) wanted[i] = i;
    runtime::ForwardBatch rows;
    rows.tokens = std::span(batch.tokens).subspan(at, piece);
    rows.view = {segments, pages, piece};
    rows.logit_rows = wanted;
    model.forward(rows, memory);
    for (uint32_t i = 0; i < piece; ++i) {
      model.logits(i, 1, logits.data());
      float loss = 0;
      const float weight = 1;
      gradient_ops->cross_entropy({1, config.vocab, {logits.data(), config.vocab},
                                   std::span(batch.targets).subspan(at + i, 1),
                                   std::span(&weight, 1), &loss});
      INFO("position " << at + i);
      CHECK(loss == losses[at + i]);
    }
    at += piece;
  }
}

TEST_CASE("A resumed run, and one on another number of threads, is the same run to the byte",
          "[runtime][train]") {
  const ToyDocuments documents(40, 512, 2);
  const TemporaryDirectory directory;
  std::ostringstream progress;
  auto options = tiny_run(directory.path());
  support::check_resumed_runs(
      options, directory, {"/checkpoint.safetensors", "/loss.csv", "/model/model.safetensors"},
      documents, [&](const auto& run, const ToyDocuments* held_out) {
        return runtime::pretrain(run, documents, held_out, progress);
      });
  options.trainer.learning_rate.rate = 2e-2;
  CHECK_THROWS_WITH(runtime::pretrain(options, documents, nullptr, progress),
                    Catch::Matchers::Contains("belongs to another run"));
}

TEST_CASE("A network learns to count", "[runtime][train]") {
  const runtime::ModelConfig config = support::SmallNetwork{}.config();
  runtime::ParameterStore store(config, false);
  store.initialise(1);
  runtime::NetworkTrainer trainer(config, store, small_options());
  const ToyDocuments documents(200, config.vocab, 7);
  runtime::BatchStream stream(documents, {.rows = 96, .sequence_length = 48});
  const double before = trainer.step(next_shards(stream, 2)).loss;
  CHECK(before == Approx(std::log(13.0)).margin(0.3));
  double after = 0;
  for (int i = 0; i < 59; ++i) after = trainer.step(next_shards(stream, 2)).loss;
  CHECK(after < 0.5 * before);
  CHECK(trainer.steps_skipped() == 0);
}

TEST_CASE("A step whose loss is not finite moves nothing and is counted", "[runtime][train]") {
  const runtime::ModelConfig config = support::SmallNetwork{}.config();
  runtime::ParameterStore store(config, false);
  store.initialise(1);
  runtime::NetworkTrainer trainer(config, store, small_options());
  const ToyDocuments documents(20, config.vocab, 7);
  runtime::BatchStream stream(documents, {.rows = 96, .sequence_length = 48});
  trainer.step(next_shards(stream, 2));
  const size_t norm = store.layout().at("model.norm.weight").offset;
  store.values()[norm] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> masters(store.masters(), store.masters() + store.layout().size());
  const auto report = trainer.step(next_shards(stream, 2));
  CHECK(report.skipped);
  CHECK(trainer.steps_skipped() == 1);
  CHECK(std::equal(masters.begin(), masters.end(), store.masters()));
  trainer.resume(trainer.steps_done(), trainer.steps_skipped());  // values from the masters again
  CHECK(!trainer.step(next_shards(stream, 2)).skipped);
}
