// Measuring a model: greedy answers without a server, bits per byte, marks of tasks.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/hybrid_model.hpp"
#include "runtime/tokenizer.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/greedy_generation.hpp"
#include "runtime/weights.hpp"
#include "tests/runtime/golden_support.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

// A random model whose tokens are single bytes.
const std::string& model_directory() { return support::random_model("tiny-k3"); }

struct Loaded {
  runtime::ModelConfig config = runtime::ModelConfig::load(model_directory());
  runtime::WeightsFile weights = runtime::WeightsFile::load(model_directory());
  std::unique_ptr<kernels::Ops> ops = kernels::make_cpu_ops(1);
  runtime::HybridModel model{config, weights, *ops, {.max_rows = 64}};
};

}  // namespace

TEST_CASE("Greedy answers depend neither on the other prompts nor on pieces", "[runtime][train]") {
  Loaded loaded;
  std::vector<std::vector<runtime::TokenId>> prompts;
  for (int i = 0; i < 7; ++i) {
    prompts.emplace_back();
    for (int t = 0; t < 3 + 25 * i; ++t) prompts.back().push_back((i * 31 + t * 7) % 250);
  }
  // An end that the model finds early somewhere, so that answers differ in length.
  const std::vector<runtime::TokenId> ends = {loaded.config.end_ids.begin(),
                                              loaded.config.end_ids.end()};
  runtime::GenerationLimits limits{.sequences = 3, .tokens = 12, .rows = 64, .end_ids = ends};
  const auto together = generate_greedy(loaded.model, prompts, limits);
  REQUIRE(together.size() == prompts.size());
  limits.sequences = 1;
  limits.rows = 5;
  CHECK(generate_greedy(loaded.model, prompts, limits) == together);
  // Each token is the first of the answer to everything before it.
  limits.tokens = 1;
  limits.rows = 64;
  for (size_t i = 0; i < prompts.size(); i += 3) {
    auto prompt = prompts[i];
    for (const auto token : together[i]) {
      CHECK(generate_greedy(loaded.model, {prompt}, limits)[0] ==
            std::vector<runtime::TokenId>{token});
      prompt.push_back(token);
    }
  }
}

TEST_CASE("Bits per byte are the cost of the text's tokens over its bytes", "[runtime][train]") {
  const support::TemporaryDirectory corpus;
  const std::string text = "A slot holds one recurrent state; a page holds sixty-four tokens.";
  const runtime::CorpusDocument document{"sqlite3-doc", "/usr/share/doc/sqlite3/a.html", text};
  runtime::write_corpus_file(runtime::corpus_file(corpus.path(), true), {document});
  runtime::EvaluationOptions options;
  options.model = model_directory();
  options.corpus = corpus.path();
  options.tasks = static_cast<uint32_t>(support::effort(5));
  options.answer_tokens = 6;
  options.context = 32;
  int told = 0;
  const auto scores = runtime::evaluate_model(options, [&](const std::string&) { ++told; });
  CHECK(told > 0);

  // The same by hand: two pieces of 32 tokens and what is left, each from an empty state.
  std::vector<runtime::TokenId> ids;
  runtime::Tokenizer::load(model_directory())->encode_text(text, ids);
  golden::Runner runner(model_directory(), 1);
  double nats = 0;
  for (size_t at = 0; at + 1 < ids.size(); at += options.context) {
    const size_t count = std::min<size_t>(options.context, ids.size() - 1 - at);
    runner.clear(0);
    const auto logits = runner.run({golden::Piece{
        0, 0, {ids.begin() + static_cast<long>(at), ids.begin() + static_cast<long>(at + count)}}});
    for (size_t row = 0; row < count; ++row) {
      const float* z = logits.data() + row * runner.config.vocab;
      double sum = 0;
      for (uint32_t i = 0; i < runner.config.vocab; ++i) sum += std::exp(double{z[i]});
      nats += std::log(sum) - double{z[ids[at + row + 1]]};
    }
  }
  const auto all = runtime::total(scores, false);
  CHECK(all.tokens == ids.size() - 1);
  CHECK(all.bytes == text.size() - 1);  // one token a byte; nothing predicts the first
  CHECK(all.nats == Approx(nats).epsilon(1e-5));
  CHECK(all.bits_per_byte() ==
        Approx(nats / std::log(2.0) / static_cast<double>(text.size() - 1)).epsilon(1e-5));
  const auto tasks = runtime::total(scores, true);
  CHECK(tasks.tasks == options.tasks);
  CHECK(tasks.right <= tasks.well_formed);
  CHECK(tasks.well_formed == 0);  // six tokens of a random model close no message
}
