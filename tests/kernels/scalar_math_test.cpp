// The elementary functions and rules as plain floats: what CUDA threads and the sampler compute.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "kernels/activation.hpp"
#include "kernels/kda.hpp"
#include "tests/kernels/tools.hpp"

using namespace kernels;

TEST_CASE("The plain float functions agree with the C library", "[kernels][math]") {
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> wide(-90.0f, 88.0f);
  for (int i = 0; i < 100000; ++i) {
    const float x = wide(rng);
    const double d = x;
    CHECK(std::fabs(math::exp(x) / std::exp(d) - 1) < 2e-7 + (x < -86 ? 1e-2 : 0));
    CHECK(std::fabs(math::tanh(x) - std::tanh(d)) <= 2e-7 * std::fabs(std::tanh(d)));
    CHECK(std::fabs(math::sigmoid(x) * (1 + std::exp(-d)) - 1) < 3e-7 + (x < -86 ? 1e-2 : 0));
    CHECK(std::fabs(math::log(std::fabs(x)) - std::log(std::fabs(d))) <=
          2e-7 * std::fabs(std::log(std::fabs(d))) + 1e-9);
  }
  CHECK(std::isnan(math::sigmoid(NAN)));
  CHECK(std::isnan(math::tanh(NAN)));
  CHECK(std::isnan(math::log(-1.0f)));
  CHECK(math::log(0.0f) == -HUGE_VALF);
  CHECK(math::softplus(-HUGE_VALF) == 0.0f);
}

TEST_CASE("SiTU and both decay gates give the specification's numbers", "[kernels]") {
  const auto vectors = tools::k3_vectors();
  for (const auto& row : vectors.at("situ").as_array()) {
    const auto v = tools::numbers(row);
    CHECK(situ_glu(v[0], v[1], 4.0f, 25.0f) == Approx(v[2]).epsilon(1e-6));
  }
  // Rows are f, A_log, dt_bias, g; the rule returns e^g.
  for (const auto& row : vectors.at("gate_k3").as_array()) {
    const auto v = tools::numbers(row);
    CHECK(kda_decay(v[0], v[2], math::exp(v[1]), true, -5.0f) ==
          Approx(std::exp(double{v[3]})).epsilon(1e-6));
  }
  for (const auto& row : vectors.at("gate_linear").as_array()) {
    const auto v = tools::numbers(row);
    CHECK(kda_decay(v[0], v[2], math::exp(v[1]), false, 0.0f) ==
          Approx(std::exp(double{v[3]})).epsilon(1e-6));
  }
}

TEST_CASE("The recurrence rule gives the specification's outputs and final state", "[kernels]") {
  const auto vectors = tools::k3_vectors();
  const auto& kda = vectors.at("kda").as_object();
  const size_t keys = kda.at("K").to_number<size_t>(), values = kda.at("V").to_number<size_t>();
  const size_t tokens = kda.at("T").to_number<size_t>();
  const auto q = tools::numbers(kda.at("q")), k = tools::numbers(kda.at("k")),
             v = tools::numbers(kda.at("v"));
  const auto g = tools::numbers(kda.at("g")), beta = tools::numbers(kda.at("beta"));
  const auto expected = tools::numbers(kda.at("O")), last = tools::numbers(kda.at("S"));
  std::vector<float> state = tools::numbers(kda.at("S0"));  // [K, V]
  const auto normalised = [&](const std::vector<float>& x, size_t t, float scale) {
    float squares = 0;
    for (size_t i = 0; i < keys; ++i)
      squares = multiply_add(x[t * keys + i], x[t * keys + i], squares);
    std::vector<float> out(keys);
    for (size_t i = 0; i < keys; ++i) out[i] = x[t * keys + i] * inverse_l2(squares, 1e-6f) * scale;
    return out;
  };
  for (size_t t = 0; t < tokens; ++t) {
    const auto query = normalised(q, t, math::inverse_sqrt(static_cast<float>(keys))),
               key = normalised(k, t, 1.0f);
    for (size_t j = 0; j < values; ++j) {
      float predicted = 0, out = 0;
      for (size_t i = 0; i < keys; ++i) {
        float& s = state[i * values + j];
        s = kda_decay_predict(s, math::exp(g[t * keys + i]), key[i], predicted);
      }
      const float update = kda_update(v[t * values + j], predicted, beta[t]);
      for (size_t i = 0; i < keys; ++i) {
        float& s = state[i * values + j];
        s = kda_write_read(s, update, key[i], query[i], out);
      }
      CHECK(out == Approx(expected[t * values + j]).epsilon(1e-5).margin(1e-6));
    }
  }
  for (size_t i = 0; i < state.size(); ++i)
    CHECK(state[i] == Approx(last[i]).epsilon(1e-5).margin(1e-6));
}
