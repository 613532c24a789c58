// Counter-based noise: the value for a token depends only on its key (seed, choice, absolute
// position, purpose) and the token's id, never on what was drawn before. So a retracted, re-batched
// or drafted token meets the same noise.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "runtime/log_exp.hpp"

namespace runtime {

enum class NoisePurpose : uint32_t { kToken = 0 };

struct NoiseKey {
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // absolute position that the drawn token takes
  NoisePurpose purpose = NoisePurpose::kToken;
};

using PhiloxBlock = std::array<uint32_t, 4>;

// Philox 4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1,
// 2, 3", 2011).
constexpr PhiloxBlock philox(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;  // golden ratio
    key[1] += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

// Four tokens (ids 4 * group .. 4 * group + 3) share one Philox block.
constexpr PhiloxBlock noise_block(const NoiseKey& key, uint32_t group) {
  return philox({group, key.position, key.choice, static_cast<uint32_t>(key.purpose)},
                {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// Standard Gumbel noise -log(-log(u)) with u = (word + 1/2) / 2^32.
inline double gumbel(uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
  return -log_double(-log_double(u));
}

// Never below gumbel(word), and cheap. With z leading ones in the word, 1 - u >= 2^-(z + 1), and
// -log(u) >= 1 - u, so the noise is at most (z + 1) ln 2; 0.6932 > ln 2 leaves room for the
// rounding of both logarithms.
inline double gumbel_bound(uint32_t word) { return 0.6932 * (std::countl_one(word) + 1); }

}  // namespace runtime
