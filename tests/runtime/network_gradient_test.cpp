// The backward of every layer, and of whole networks, against central differences in double.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "runtime/train/network_backward.hpp"
#include "tests/support/central_differences.hpp"
#include "tests/support/plain_network.hpp"
#include "tests/support/random_parameters.hpp"
#include "tests/support/small_configs.hpp"

namespace {

using support::PlainGradientOps;
using support::PlainNetwork;
using support::SmallNetwork;

// A network with random parameters, a batch of two sequences, and its loss as a function of the
// parameters.
class Lab {
 public:
  explicit Lab(const SmallNetwork& network) : config_(network.config()), layout_(config_) {
    std::mt19937 random(7);
    values_ = support::random_parameters(layout_, random);
    for (const kernels::Sequence& s : sequences_)
      for (size_t i = 0; i < s.count; ++i) {
        tokens_.push_back(static_cast<int32_t>(random() % config_.vocab));
        targets_.push_back(static_cast<int32_t>(random() % config_.vocab));
        weights_.push_back(static_cast<float>(random() % 5) * 0.25f);
      }
    bias_.assign(config_.ffn.experts, 0.0f);
    bias_[1] = 0.2f;  // selection differs from the scores' own order
  }

  double loss() {
    const runtime::NetworkParameters<double> view(config_, layout_, values_.data(), nullptr);
    PlainNetwork<double> network(config_, view, bias_.data());
    auto logits = network.forward(tokens_, sequences_);
    return ops_.cross_entropy(cross_entropy(logits));
  }

  std::vector<double> gradient() {
    std::vector<double> grads(layout_.size(), 0);
    const runtime::NetworkParameters<double> view(config_, layout_, values_.data(), grads.data());
    PlainNetwork<double> network(config_, view, bias_.data());
    auto logits = network.forward(tokens_, sequences_);
    std::vector<double> dhead(tokens_.size() * config_.hidden);
    const kernels::Grid<double> dhead_rows{dhead.data(), config_.hidden};
    runtime::head_backward<double>(ops_, config_, cross_entropy(logits), network.tape().head,
                                   view.head, dhead_rows);
    runtime::NetworkBackward<double>(config_, ops_).run(network.tape(), view, dhead_rows);
    return grads;
  }

  // Compares up to `most` elements of every parameter.
  void check(size_t most) {
    support::check_differences(layout_.all(), values_, gradient(), most, [this] { return loss(); });
  }

 private:
  kernels::CrossEntropyGrad<double> cross_entropy(std::vector<double>& logits) {
    return {tokens_.size(), config_.vocab, {logits.data(), config_.vocab}, targets_, weights_,
            nullptr};
  }

  runtime::ModelConfig config_;
  runtime::ParameterLayout layout_;
  std::vector<double> values_;
  std::vector<kernels::Sequence> sequences_ = {{0, 6}, {6, 3}};
  std::vector<int32_t> tokens_, targets_;
  std::vector<float> weights_, bias_;
  PlainGradientOps<double> ops_;
};

}  // namespace

// A hybrid model has at least one layer of each attention: two layers are the smallest.
TEST_CASE("The backward of each kind of layer agrees with finite differences", "[runtime][train]") {
  SECTION("Bounded decay, whole gate, query bottleneck, output gate, dense SiTU") {
    Lab({.layers = 2, .full = {2}, .first_dense = 2}).check(6);
  }
  SECTION("Softplus decay, low-rank gate, plain queries, no output gate, dense SwiGLU") {
    Lab({.k3 = false, .layers = 2, .full = {2}, .first_dense = 2, .q_lora = 0}).check(6);
  }
  SECTION("Mixtures in a latent space") {
    Lab({.layers = 2, .full = {1}, .first_dense = 0}).check(4);
  }
  SECTION("Mixtures on the hidden width") {
    Lab({.k3 = false, .layers = 2, .full = {1}, .first_dense = 0, .latent = 0}).check(4);
  }
}

TEST_CASE("The backward of a whole K3 network agrees with finite differences",
          "[runtime][train]") {
  Lab({.layers = 5, .full = {3, 5}}).check(3);
}

TEST_CASE("The backward of a whole Kimi-Linear network agrees with finite differences",
          "[runtime][train]") {
  Lab({.k3 = false, .layers = 4, .full = {4}, .q_lora = 0, .latent = 0}).check(3);
}
