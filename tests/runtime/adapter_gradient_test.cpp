// Gradients of an adapter's factors, of every module, against central differences in double: the
// loss is that of a network with the adapter merged into its weights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/train/network_backward.hpp"
#include "tests/support/central_differences.hpp"
#include "tests/support/merged_adapter.hpp"
#include "tests/support/plain_network.hpp"
#include "tests/support/random_parameters.hpp"
#include "tests/support/small_configs.hpp"

namespace {

using support::PlainNetwork;
using support::SmallNetwork;

class Lab {
 public:
  Lab(const SmallNetwork& network, std::vector<std::string> targets)
      : config_(network.config()),
        base_(config_),
        settings_{.rank = 3, .alpha = 4.5, .targets = std::move(targets)},
        layout_(config_, settings_) {
    std::mt19937 random(3);
    values_ = support::random_parameters(base_, random);
    std::normal_distribution<double> normal;
    for (size_t i = 0; i < layout_.size(); ++i) factors_.push_back(0.15 * normal(random));
    for (size_t i = 0; i < 9; ++i) {
      tokens_.push_back(static_cast<int32_t>(random() % config_.vocab));
      targets_.push_back(static_cast<int32_t>(random() % config_.vocab));
      weights_.push_back(0.25f * static_cast<float>(1 + random() % 4));
    }
    bias_.assign(config_.ffn.experts, 0.0f);
    bias_[1] = 0.2f;
  }

  // Compares up to `most` elements of every factor; returns how many factors there are.
  size_t check(size_t most) {
    support::check_differences(layout_.all(), factors_, gradient(), most,
                               [this] { return loss(); });
    return layout_.all().size();
  }

 private:
  // Calls use(merged network after its forward, the loss's arguments).
  template <class Use>
  double with_merged(const Use& use) {
    const auto merged =
        support::merge_adapter(base_, values_, layout_, factors_, settings_.scale());
    const runtime::NetworkParameters<double> view(config_, base_, merged.data(), nullptr);
    PlainNetwork<double> network(config_, view, bias_.data());
    auto logits = network.forward(tokens_, sequences_);
    return use(network.tape(), kernels::CrossEntropyGrad<double>{
                                   tokens_.size(), config_.vocab, {logits.data(), config_.vocab},
                                   targets_, weights_, nullptr});
  }

  double loss() {
    return with_merged([&](const auto&, const auto& loss) { return ops_.cross_entropy(loss); });
  }

  std::vector<double> gradient() {
    std::vector<double> grads(layout_.size(), 0);
    const runtime::NetworkParameters<double> frozen(config_, base_, values_.data(), nullptr);
    const runtime::AdapterParameters<double> adapter(config_, layout_, settings_.scale(),
                                                     factors_.data(), grads.data());
    with_merged([&](const runtime::Tape<double>& tape, const auto& loss) {
      std::vector<double> dhead(tokens_.size() * config_.hidden);
      const kernels::Grid<double> rows{dhead.data(), config_.hidden};
      runtime::head_backward<double>(ops_, config_, loss, tape.head, frozen.head, rows);
      runtime::NetworkBackward<double>(config_, ops_).run(tape, frozen, rows, nullptr, &adapter);
      return 0.0;
    });
    return grads;
  }

  runtime::ModelConfig config_;
  runtime::ParameterLayout base_;
  runtime::AdapterSettings settings_;
  runtime::AdapterLayout layout_;
  std::vector<double> values_, factors_;
  std::vector<kernels::Sequence> sequences_ = {{0, 6}, {6, 3}};
  std::vector<int32_t> tokens_, targets_;
  std::vector<float> weights_, bias_;
  support::PlainGradientOps<double> ops_;
};

}  // namespace

TEST_CASE("Gradients of the factors of every module agree with finite differences",
          "[runtime][train][adapter]") {
  // 3 layers: 4 factors of queries and latents, 6 of o_proj, 4 a layer beside experts, 12 of these.
  SECTION("K3: latent mixtures, query bottleneck, attention residuals") {
    CHECK(Lab({.layers = 3, .full = {2}}, {}).check(4) == 4 + 6 + 12 + 12);
  }
  SECTION("Kimi-Linear: plain queries, mixtures on the hidden width") {
    CHECK(Lab({.k3 = false, .layers = 3, .full = {1}, .q_lora = 0, .latent = 0}, {}).check(4) ==
          2 + 6 + 12 + 12);
  }
  SECTION("Each module alone, down to the lowest that has it") {
    for (const char* target : {"o_proj", "q_a_proj", "kv_a_proj_with_mqa", "down_proj", "w1", "w3",
                               "w2"})
      Lab({.layers = 4, .full = {3}, .first_dense = 2}, {target}).check(2);
    Lab({.layers = 4, .full = {3}, .first_dense = 2}, {"gate_proj", "up_proj"}).check(2);
  }
}

TEST_CASE("An adapter's settings are refused by name", "[runtime][train][adapter]") {
  using Catch::Matchers::Contains;
  const auto config = SmallNetwork{}.config();
  const auto layout = [&](const runtime::AdapterSettings& settings) {
    runtime::AdapterLayout(config, settings);
  };
  CHECK_THROWS_WITH(layout({.rank = 0}), Contains("rank must be 1 to 1024"));
  CHECK_THROWS_WITH(layout({.alpha = -1}), Contains("alpha must be a positive number"));
  CHECK_THROWS_WITH(layout({.targets = {"q_proj"}}), Contains("\"q_proj\" is none of o_proj"));
  CHECK_THROWS_WITH(layout({.targets = {"up_proj"}}), Contains("name both"));
}
