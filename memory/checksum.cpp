#include "memory/checksum.hpp"

#include <bit>
#include <cstring>

namespace memory {
namespace {

constexpr uint64_t kOdd[4] = {0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
                              0x8ebc6af09c88c6e3};

uint64_t step(uint64_t lane, uint64_t word, uint64_t odd) {
  return std::rotl((lane ^ word) * odd, 29) + odd;
}

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 32)) * kOdd[0];
  x = (x ^ (x >> 29)) * kOdd[1];
  return x ^ (x >> 32);
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t lanes[4] = {seed + kOdd[0], seed ^ kOdd[1], seed - kOdd[2], ~seed + kOdd[3]};
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof lanes; left -= sizeof lanes, at += sizeof lanes) {
    uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    for (int i = 0; i < 4; ++i) lanes[i] = step(lanes[i], words[i], kOdd[i]);
  }
  uint64_t tail[4] = {};
  if (left > 0) std::memcpy(tail, at, left);
  uint64_t sum = mix(bytes.size());
  for (int i = 0; i < 4; ++i) sum = mix(sum ^ step(lanes[i], tail[i], kOdd[i])) + kOdd[i];
  return sum;
}

}  // namespace memory
