// Prompts of random tokens, what is asked with them, and how two answers are compared.
#pragma once

#include <catch2/catch.hpp>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/core_server.hpp"
#include "tests/support/toy_model.hpp"

namespace support {

using Tokens = std::vector<runtime::TokenId>;

constexpr runtime::TokenId kPoison = 23;  // never sampled: its bias is -1000

// Toy models that count what they see wrong in one place.
inline ModelMaker toy_maker(std::shared_ptr<uint64_t> violations) {
  return [violations](uint32_t page_tokens) {
    ToyOptions options;
    options.page_tokens = page_tokens;
    options.poison = kPoison;
    options.violations = violations;
    return std::make_unique<ToyModel>(options);
  };
}

inline Tokens random_tokens(std::mt19937_64& rng, size_t count, uint32_t vocab) {
  Tokens tokens(count);
  for (runtime::TokenId& token : tokens) token = static_cast<runtime::TokenId>(rng() % vocab);
  return tokens;
}

inline Tokens join(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Tokens head(const Tokens& tokens, size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

inline runtime::NewSequence asking(Tokens prompt, uint32_t max_tokens, uint64_t seed = 5) {
  runtime::NewSequence sequence;
  sequence.prompt = std::move(prompt);
  sequence.max_tokens = max_tokens;
  sequence.sampling.seed = seed;
  sequence.sampling.top_logprobs = 1;
  sequence.sampling.logit_bias = {{kPoison, -1000.0f}};
  return sequence;
}

inline void check_same(const Heard& a, const Heard& b) {
  REQUIRE(a.finished.size() == 1);
  REQUIRE(b.finished.size() == 1);
  CHECK(a.finished[0].reason == b.finished[0].reason);
  REQUIRE(a.tokens == b.tokens);
  for (size_t i = 0; i < a.tokens.size(); ++i) REQUIRE(same_bits(*a.logprobs[i], *b.logprobs[i]));
}

inline uint32_t cached(const Heard& heard) { return heard.finished.at(0).cached_tokens; }

}  // namespace support
