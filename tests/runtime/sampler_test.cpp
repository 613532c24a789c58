// The sampler against oracles a reader can check: a full sort for the filters, a loop for the
// penalties, chi-square for the draws.
#include "runtime/sampler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "runtime/log_exp.hpp"
#include "runtime/noise.hpp"
#include "runtime/vocab_filter.hpp"

namespace {

using runtime::PenaltyCounts;
using runtime::SamplingParams;
using runtime::TokenId;

std::vector<float> random_logits(std::mt19937& rng, size_t count, float spread, bool with_ties) {
  std::uniform_real_distribution<float> uniform(-spread, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) {
    logit = uniform(rng);
    if (with_ties) logit = std::round(logit * 2) / 2;
  }
  return logits;
}

std::optional<TokenId> draw(std::vector<float> logits, const SamplingParams& params,
                            uint32_t position = 0, const PenaltyCounts& counts = {},
                            uint32_t output_tokens = 0) {
  return runtime::sample({logits, &params, &counts, position, output_tokens});
}

// Sorts everything, as a textbook would.
std::vector<TokenId> sorted_survivors(const std::vector<float>& logits,
                                      const SamplingParams& params) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < order.size()) {
    order.resize(static_cast<size_t>(params.top_k));
  }
  const auto weight = [&](TokenId id) {
    const double difference =
        double{logits[static_cast<size_t>(id)]} - double{logits[static_cast<size_t>(order[0])]};
    return std::exp(difference / double{params.temperature});
  };
  double total = 0;
  for (const TokenId id : order) total += weight(id);
  std::vector<TokenId> kept;
  double before = 0;
  for (const TokenId id : order) {
    if (params.top_p < 1.0f && before >= double{params.top_p} * total) break;
    if (weight(id) >= double{params.min_p}) kept.push_back(id);
    before += weight(id);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// Upper tail bound: chi-square with k degrees of freedom has mean k and variance 2k; five
// deviations.
void check_frequencies(const std::vector<double>& probabilities, const SamplingParams& params,
                       const std::vector<float>& logits) {
  constexpr uint32_t kDraws = 40000;
  std::vector<double> seen(probabilities.size());
  for (uint32_t position = 0; position < kDraws; ++position) {
    const auto token = draw(logits, params, position);
    REQUIRE(token.has_value());
    ++seen[static_cast<size_t>(*token)];
  }
  double chi_square = 0, cells = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const double expected = probabilities[i] * kDraws;
    if (expected == 0) {
      REQUIRE(seen[i] == 0);
      continue;
    }
    chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
    ++cells;
  }
  CAPTURE(chi_square, cells);
  CHECK(chi_square < (cells - 1) + 5 * std::sqrt(2 * (cells - 1)));
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  const double largest = double{*std::max_element(logits.begin(), logits.end())};
  std::vector<double> p;
  for (const float logit : logits) p.push_back(std::exp((double{logit} - largest) / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

}  // namespace

TEST_CASE("Philox answers the published test vectors", "[runtime]") {
  using runtime::philox;
  using runtime::PhiloxBlock;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Double log and exp agree with the library to a few units in the last place",
          "[runtime][property]") {
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> exponent(-300, 300), small(-699, 5), unit(0, 1);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::pow(10.0, exponent(rng));
    CHECK(std::abs(runtime::log_double(x) - std::log(x)) <=
          4e-16 * std::max(1.0, std::abs(std::log(x))));
    const double near_one = 1.0 - unit(rng) * 1e-6;
    CHECK(runtime::log_double(near_one) == Approx(std::log(near_one)).epsilon(1e-15).margin(0));
    const double y = small(rng);
    CHECK(runtime::exp_double(y) == Approx(std::exp(y)).epsilon(1e-14).margin(0));
  }
  CHECK(runtime::log_double(1.0) == 0.0);
  CHECK(runtime::exp_double(0.0) == 1.0);
  CHECK(runtime::exp_double(-1e9) == 0.0);
  CHECK(runtime::exp_double(-std::numeric_limits<double>::infinity()) == 0.0);
}

TEST_CASE("The cheap bound is never below the noise", "[runtime][property]") {
  std::mt19937 rng(5);
  std::vector<uint32_t> words{0, 1, ~0u, ~0u - 1, 0x7fffffff, 0x80000000};
  for (int shift = 0; shift < 32; ++shift) words.push_back(~((1u << shift) - 1u));
  for (int i = 0; i < 100000; ++i)
    words.push_back(static_cast<uint32_t>(rng()) | (~0u << (rng() % 32)));
  for (const uint32_t word : words) REQUIRE(runtime::gumbel(word) < runtime::gumbel_bound(word));
}

TEST_CASE("Temperature 0 takes the largest logit, of equals the lowest id", "[runtime]") {
  SamplingParams params;
  params.temperature = 0;
  CHECK(draw({1, 3, 3, 2}, params) == 1);
  CHECK(draw({-5, -7}, params) == 0);
}

TEST_CASE("NaN, plus infinity or nothing left to draw fails the row", "[runtime]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    CHECK(!draw({0, std::numeric_limits<float>::quiet_NaN(), 1}, params));
    CHECK(!draw({0, infinity, 1}, params));
    CHECK(!draw({-infinity, -infinity}, params));
    CHECK(draw({-infinity, 0}, params) == 1);
  }
}

TEST_CASE("Sampled frequencies follow the softmax", "[runtime][property]") {
  std::mt19937 rng(17);
  const auto logits = random_logits(rng, 37, 2.0f, false);
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 1234;
    check_frequencies(softmax(logits, double{temperature}), params, logits);
  }
}

TEST_CASE("Filtered draws follow the renormalised softmax and never leave the survivors",
          "[runtime][property]") {
  std::mt19937 rng(18);
  const auto logits = random_logits(rng, 50, 3.0f, true);
  SamplingParams params;
  params.temperature = 1.3f;
  params.top_p = 0.8f;
  params.top_k = 20;
  params.min_p = 0.05f;
  params.seed = 99;
  auto kept = logits;
  const auto survivors = sorted_survivors(logits, params);
  REQUIRE(survivors.size() < 20);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!std::binary_search(survivors.begin(), survivors.end(), static_cast<TokenId>(i))) {
      kept[i] = -std::numeric_limits<float>::infinity();
    }
  }
  check_frequencies(softmax(kept, 1.3), params, logits);
}

TEST_CASE("Filters keep what a full sort keeps, ties to the lower id", "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const size_t vocab = 1 + rng() % 400;
  const auto logits =
      random_logits(rng, vocab, std::ldexp(1.0f, static_cast<int>(rng() % 8) - 2), rng() % 2 == 0);
  std::uniform_real_distribution<float> unit(0.01f, 0.99f);
  SamplingParams params;
  params.temperature = unit(rng) * 2;
  if (rng() % 2 == 0) params.top_k = static_cast<int32_t>(1 + rng() % (vocab + 5));
  if (rng() % 2 == 0) params.top_p = unit(rng);
  if (rng() % 2 == 0) params.min_p = unit(rng) * unit(rng);
  CHECK(runtime::surviving_tokens(logits, params) == sorted_survivors(logits, params));
}

TEST_CASE("Extreme filter settings keep at least the best token", "[runtime]") {
  const auto survivors = [](std::vector<float> logits, auto set) {
    SamplingParams params;
    set(params);
    return runtime::surviving_tokens(logits, params);
  };
  const std::vector<float> logits{-3e38f, 3e38f, 0.0f, -0.0f, 3e38f};
  const std::vector<TokenId> best{1}, both{1, 4}, zero{0};
  CHECK(survivors(logits, [](auto& p) { p.top_p = 1e-30f; }) == best);
  CHECK(survivors(logits, [](auto& p) { p.top_k = 1; }) == best);
  CHECK(survivors(logits, [](auto& p) { p.min_p = 1; }) == both);
  CHECK(survivors(logits, [](auto& p) { p.temperature = 1e-40f, p.top_p = 0.99f; }) == both);
  CHECK(survivors({0.0f, -0.0f, -1}, [](auto& p) { p.top_k = 1; }) == zero);
  CHECK(survivors({-0.0f, 0.0f, -1}, [](auto& p) { p.top_k = 1; }) == zero);
}

TEST_CASE("Penalties, bias and the min_tokens mask change the logits in the stated order",
          "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 100u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto logits = random_logits(rng, 30, 4.0f, false);
  std::uniform_real_distribution<float> unit(-1.5f, 1.5f);
  SamplingParams params;
  params.temperature = 0;
  params.repetition_penalty = 1.0f + std::abs(unit(rng));
  params.frequency_penalty = unit(rng);
  params.presence_penalty = unit(rng);
  params.logit_bias = {{static_cast<TokenId>(rng() % 30), unit(rng)},
                       {static_cast<TokenId>(rng() % 30), unit(rng)}};
  params.stop_ids = {static_cast<TokenId>(rng() % 30), static_cast<TokenId>(rng() % 30)};
  params.min_tokens = 5;
  const auto output_tokens = static_cast<uint32_t>(rng() % 10);
  PenaltyCounts counts;
  std::map<TokenId, uint32_t> output, both;
  for (uint32_t i = 0; i < 20; ++i) {
    const TokenId id = static_cast<TokenId>(rng() % 30);
    ++both[id];
    if (i < 8) counts.add_prompt(id);
    if (i >= 8) counts.add_output(id), ++output[id];
  }
  auto expected = logits;
  for (const auto& [id, count] : both) {
    float& logit = expected[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  for (const auto& [id, count] : output) {
    expected[static_cast<size_t>(id)] -=
        params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
  }
  for (const auto& [id, bias] : params.logit_bias) expected[static_cast<size_t>(id)] += bias;
  if (output_tokens < 5) {
    for (const TokenId id : params.stop_ids)
      expected[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  }
  auto changed = logits;
  const auto token = runtime::sample({changed, &params, &counts, 0, output_tokens});
  CHECK(changed == expected);
  CHECK(token == std::max_element(expected.begin(), expected.end()) - expected.begin());
}

TEST_CASE("Any penalty a client can send leaves a token to draw", "[runtime]") {
  PenaltyCounts counts;
  counts.add_output(0);
  counts.add_prompt(1);
  for (const float penalty : {1e-40f, 1e-30f, 1e30f, 3e38f}) {
    SamplingParams params;
    params.repetition_penalty = penalty;
    CHECK(draw({4e20f, -4e20f, 1}, params, 3, counts).has_value());
  }
  SamplingParams outside;
  outside.logit_bias = {{-4, 1.0f}, {1000, 1.0f}};
  outside.min_tokens = 3;
  outside.stop_ids = {-1, 77};
  counts.add_output(-9);
  counts.add_output(5000);
  outside.frequency_penalty = 1;
  CHECK(draw({1, 2}, outside, 3, counts).has_value());
}

TEST_CASE("A token depends on its key and its logits alone", "[runtime][property]") {
  std::mt19937 rng(23);
  const auto logits = random_logits(rng, 100, 1.0f, false);
  SamplingParams params;
  params.seed = 7;
  params.choice = 2;
  const auto token = draw(logits, params, 41);
  for (int i = 0; i < 10; ++i) {
    draw(random_logits(rng, 64, 1.0f, false), params,
         static_cast<uint32_t>(rng()));  // whatever was drawn in between
    CHECK(draw(logits, params, 41) == token);
  }
  // A filter that drops other tokens does not change the noise of those that stay.
  SamplingParams filtered = params;
  filtered.top_k = 99;
  CHECK(draw(logits, filtered, 41) == token);
  // Every part of the key matters.
  const auto differs = [&](auto change) {
    int differing = 0;
    for (uint32_t position = 0; position < 50; ++position) {
      SamplingParams other = params;
      uint32_t other_position = position;
      change(other, other_position);
      differing += draw(logits, other, other_position) != draw(logits, params, position);
    }
    return differing > 30;
  };
  CHECK(differs([](SamplingParams& p, uint32_t&) { p.seed += 1; }));
  CHECK(differs([](SamplingParams& p, uint32_t&) { p.seed += uint64_t{1} << 40; }));
  CHECK(differs([](SamplingParams& p, uint32_t&) { p.choice += 1; }));
  CHECK(differs([](SamplingParams&, uint32_t& position) { position += 1000; }));
}

TEST_CASE("Log-probabilities are within 1e-6 of a wide softmax; ties go to the lower id",
          "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto logits = random_logits(rng, 1 + rng() % 300, 20.0f, rng() % 2 == 0);
  const auto chosen = static_cast<TokenId>(rng() % logits.size());
  const int32_t top = static_cast<int32_t>(rng() % 22) - 1;
  const auto result = runtime::position_logprobs(logits, chosen, top);
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - logits[0]);
  const auto expected = [&](TokenId id) {
    return static_cast<double>(static_cast<long double>(logits[static_cast<size_t>(id)]) -
                               logits[0] - std::log(sum));
  };
  CHECK(result.chosen.token == chosen);
  const auto close = [&](runtime::TokenLogprob entry) {
    const double value = expected(entry.token);
    return std::abs(double{entry.logprob} - value) < 1e-6 * std::max(1.0, std::abs(value));
  };
  CHECK(close(result.chosen));
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  REQUIRE(result.top.size() == std::min(order.size(), static_cast<size_t>(std::max(top, 0))));
  for (size_t i = 0; i < result.top.size(); ++i) {
    CHECK(result.top[i].token == order[i]);
    CHECK(close(result.top[i]));
  }
}
