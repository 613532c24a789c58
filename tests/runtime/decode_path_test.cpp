// Decoding token by token is the whole-sequence forward, in double: states, windows and latent rows
// that are carried lose nothing.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/decode_network.hpp"
#include "tests/support/plain_network.hpp"
#include "tests/support/random_parameters.hpp"
#include "tests/support/small_configs.hpp"

namespace {

// The largest difference of a row to its decoded value, relative to the row's largest element.
double difference(const double* row, const support::DoubleRow& decoded) {
  double largest = 1, error = 0;
  for (size_t i = 0; i < decoded.size(); ++i) {
    largest = std::max(largest, std::fabs(row[i]));
    error = std::max(error, std::fabs(row[i] - decoded[i].value));
  }
  return error / largest;
}

// Two sequences together, whole, against each of them alone, token by token.
void compare(const support::SmallNetwork& small) {
  const runtime::ModelConfig config = small.config();
  const runtime::ParameterLayout layout(config);
  std::mt19937 random(5);
  const auto values = support::random_parameters(layout, random);
  const runtime::NetworkParameters<double> parameters(config, layout, values.data(), nullptr);
  std::vector<float> bias(config.ffn.experts, 0.0f);
  bias[1] = 0.2f;
  const std::vector<kernels::Sequence> sequences = {{0, 150}, {150, 7}};  // 150: three blocks
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < 157; ++i) tokens.push_back(static_cast<int32_t>(random() % config.vocab));

  support::PlainNetwork<double> whole(config, parameters, bias.data());
  const auto logits = whole.forward(tokens, sequences);
  double attention = 0, ffn = 0, head = 0;
  for (const kernels::Sequence& sequence : sequences) {
    support::DecodeNetwork decoder(config, parameters, bias.data());
    for (size_t row = sequence.begin; row < sequence.begin + sequence.count; ++row) {
      const auto decoded = decoder.step(tokens[row]);
      head = std::max(head, difference(logits.data() + row * config.vocab, decoded));
      for (size_t layer = 0; layer < config.layer_count(); ++layer) {
        const auto& tape = whole.tape().layers[layer];
        attention = std::max(attention, difference(tape.attention_out.row(row),
                                                   decoder.attention_out()[layer]));
        ffn = std::max(ffn, difference(tape.ffn_out.row(row), decoder.ffn_out()[layer]));
      }
    }
  }
  CHECK(attention < 1e-12);
  CHECK(ffn < 1e-12);
  CHECK(head < 1e-12);
}

}  // namespace

TEST_CASE("Token by token every kind of layer gives what it gives over the whole sequence",
          "[runtime][train]") {
  SECTION("Bounded decay, whole gate, query bottleneck, output gate, dense SiTU") {
    compare({.layers = 2, .full = {2}, .first_dense = 2});
  }
  SECTION("Softplus decay, low-rank gate, plain queries, no output gate, dense SwiGLU") {
    compare({.k3 = false, .layers = 2, .full = {2}, .first_dense = 2, .q_lora = 0});
  }
  SECTION("Mixtures in a latent space") {
    compare({.layers = 2, .full = {1}, .first_dense = 0});
  }
  SECTION("Mixtures on the hidden width") {
    compare({.k3 = false, .layers = 2, .full = {1}, .first_dense = 0, .latent = 0});
  }
}

TEST_CASE("Token by token a whole network gives the logits of the whole sequence",
          "[runtime][train]") {
  SECTION("K3, with a bank of attention residuals") { compare({.layers = 5, .full = {3, 5}}); }
  SECTION("Kimi-Linear") {
    compare({.k3 = false, .layers = 4, .full = {4}, .q_lora = 0, .latent = 0});
  }
}
