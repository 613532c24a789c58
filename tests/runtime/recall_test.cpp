// Recalls teach what they claim: a learnt token follows from the text before it. And a network that
// has learnt nothing yet already leans towards it.
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <set>
#include <utility>
#include <vector>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/train/batch_stream.hpp"
#include "runtime/train/network_trainer.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/tasks/example_shares.hpp"
#include "runtime/train/tasks/recall.hpp"

namespace {

runtime::RecallText make(uint64_t index, uint32_t ranks, size_t length = 200) {
  runtime::TaskRandom random(4, "test", index);
  return runtime::make_recall(random, ranks, length);
}

class Recalls final : public runtime::Documents {
 public:
  Recalls(size_t count, uint32_t ranks, size_t length) {
    for (size_t i = 0; i < count; ++i) texts_.push_back(make(i, ranks, length));
  }
  size_t count() const override { return texts_.size(); }
  runtime::Document document(size_t index) const override {
    return {texts_[index].tokens, texts_[index].mask, runtime::TextSource::kRecall};
  }

 private:
  std::vector<runtime::RecallText> texts_;
};

// The share of recalled tokens that a network which has learnt nothing finds the likeliest.
double recalled_by(runtime::ParameterStart start) {
  const auto config = runtime::ModelConfig::parse(
      boost::json::serialize(runtime::preset_config("tiny-k3")), "tiny-k3");
  runtime::ParameterStore store(config, false);
  store.initialise(1, start);
  runtime::TrainerOptions options;
  options.rows = 256;
  options.shards = options.threads = 1;
  runtime::NetworkTrainer trainer(config, store, options);
  trainer.resume(0, 0);
  const Recalls recalls(20, 256, 60);
  return trainer.evaluate(runtime::cut_in_order(recalls, {.rows = 256, .sequence_length = 64}))
      .right;
}

}  // namespace

TEST_CASE("A learnt token of a recall has followed the same tokens before", "[runtime][train]") {
  for (uint64_t index = 0; index < 60; ++index) {
    const auto text = make(index, 50000);  // so that random tokens hardly ever repeat
    REQUIRE(text.tokens.size() == text.mask.size());
    CHECK(text.tokens.size() <= 200);
    CHECK(text.mask.front() == 0);
    std::set<std::pair<uint16_t, uint16_t>> seen;
    size_t learnt = 0, known = 0;
    for (size_t i = 1; i < text.tokens.size(); ++i) {
      const std::pair pair(text.tokens[i - 1], text.tokens[i]);
      if (text.mask[i] != 0) {
        ++learnt;
        known += seen.count(pair);
      }
      seen.insert(pair);
    }
    CHECK(learnt > 0);
    // The first token of a string that comes the third time has another one before it at first.
    CHECK(known + 2 >= learnt);
  }
}

TEST_CASE("A network that starts as a look-up leans towards what followed the last time",
          "[runtime][train]") {
  CHECK(recalled_by(runtime::ParameterStart::kLookUp) > 0.02);
  CHECK(recalled_by(runtime::ParameterStart::kNoise) < 0.01);  // 1 of 512 by chance
}

TEST_CASE("Shares of examples name generators", "[runtime][train]") {
  const auto shares = runtime::parse_example_shares({"tools=40", "copy=2"});
  CHECK(shares[static_cast<size_t>(runtime::TextSource::kTools)] == 40);
  CHECK(shares[static_cast<size_t>(runtime::TextSource::kCopy)] == 2);
  CHECK(shares[static_cast<size_t>(runtime::TextSource::kChat)] == 0);
  for (const char* wrong : {"tools", "tools=", "tools=x", "tols=4", "recall=4", "tools=-1"})
    CHECK_THROWS_WITH(runtime::parse_example_shares({wrong}),
                      Catch::Matchers::Contains("expected NAME=SHARE"));
  CHECK_THROWS_WITH(runtime::parse_example_shares({"tools=0"}),
                    Catch::Matchers::Contains("all 0"));
}
