#include "runtime/bpe.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/support/tokenizer_directory.hpp"

using runtime::BytePairEncoder;
using runtime::TokenId;

namespace {

// The definition: look at all pairs, join the one of lowest rank, the leftmost of equals, until
// none is left.
std::vector<TokenId> encode_naively(const BytePairEncoder& encoder, const std::string& piece) {
  if (const auto whole = encoder.find(piece)) return {*whole};
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  for (;;) {
    std::optional<TokenId> best;
    size_t place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rank = encoder.find(parts[i] + parts[i + 1]);
      if (rank && (!best || *rank < *best)) {
        best = rank;
        place = i;
      }
    }
    if (!best) break;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& part : parts) ids.push_back(*encoder.find(part));
  return ids;
}

// Some tokens join two others, as training makes them; some are out of reach of any merge.
std::vector<std::string> random_vocabulary(std::mt19937& rng) {
  std::vector<std::string> tokens = support::single_bytes();
  std::set<std::string> known(tokens.begin(), tokens.end());
  const size_t extra = rng() % 200;
  for (size_t i = 0; i < extra; ++i) {
    std::string token;
    if (rng() % 4 == 0) {
      for (size_t k = 2 + rng() % 5; k > 0; --k) token += static_cast<char>('a' + rng() % 3);
    } else {
      const auto pick = [&] {
        const size_t late = tokens.size() - 256;
        return late > 0 && rng() % 2 == 0 ? tokens[256 + rng() % late]
                                          : std::string(1, static_cast<char>('a' + rng() % 3));
      };
      token = pick() + pick();
    }
    if (token.size() < 40 && known.insert(token).second) tokens.push_back(token);
  }
  std::shuffle(tokens.begin(), tokens.end(), rng);
  return tokens;
}

}  // namespace

TEST_CASE("byte-pair encoding joins the pair of lowest rank, leftmost first, for any vocabulary",
          "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const BytePairEncoder encoder(random_vocabulary(rng));
  for (int round = 0; round < 40; ++round) {
    std::string piece;
    for (size_t k = 1 + rng() % 80; k > 0; --k) piece += static_cast<char>('a' + rng() % 3);
    std::vector<TokenId> ids;
    encoder.encode(piece, ids);
    REQUIRE(ids == encode_naively(encoder, piece));
  }
}

TEST_CASE("a piece that is a token is that token, whatever its merges would give", "[runtime]") {
  std::vector<std::string> tokens = support::single_bytes();
  tokens.push_back("bc");
  tokens.push_back("abc");  // merges reach "a" + "bc" only
  const BytePairEncoder encoder(tokens);
  std::vector<TokenId> ids;
  encoder.encode("abc", ids);
  CHECK(ids == std::vector<TokenId>{257});
}

TEST_CASE("a piece of a million bytes is encoded without quadratic work", "[runtime]") {
  std::vector<std::string> tokens = support::single_bytes();
  for (size_t length = 2; length <= 16; length *= 2) tokens.emplace_back(length, 'a');
  const BytePairEncoder encoder(tokens);
  std::vector<TokenId> ids;
  encoder.encode(std::string(1u << 20, 'a'), ids);
  CHECK(ids == std::vector<TokenId>((1u << 20) / 16, 259));
}
