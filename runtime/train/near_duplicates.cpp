#include "runtime/train/near_duplicates.hpp"

#include <algorithm>
#include <map>

namespace runtime {

namespace {

constexpr size_t kShingleWords = 8;

uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// A word is a run of ASCII letters and digits or other bytes past ASCII; case does not count.
std::vector<uint64_t> word_hashes(std::string_view text) {
  std::vector<uint64_t> words;
  uint64_t hash = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_upper = byte >= 'A' && byte <= 'Z';
    const bool is_word =
        is_upper || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80;
    if (is_word) {
      hash = mix(hash ^ (byte + (is_upper ? 32u : 0u)));
    } else if (hash != 0) {
      words.push_back(hash);
      hash = 0;
    }
  }
  if (hash != 0) words.push_back(hash);
  return words;
}

std::vector<uint64_t> distinct_shingles(std::string_view text) {
  const std::vector<uint64_t> words = word_hashes(text);
  std::vector<uint64_t> shingles;
  const size_t length = std::min(kShingleWords, words.size());  // a short text is one shingle
  for (size_t i = 0; length > 0 && i + length <= words.size(); ++i) {
    uint64_t hash = 0;
    for (size_t k = 0; k < length; ++k) hash = mix(hash + words[i + k]);
    shingles.push_back(hash);
  }
  std::sort(shingles.begin(), shingles.end());
  shingles.erase(std::unique(shingles.begin(), shingles.end()), shingles.end());
  return shingles;
}

}  // namespace

std::optional<size_t> NearDuplicates::add(std::string_view text, size_t index, bool is_protected) {
  const std::vector<uint64_t> shingles = distinct_shingles(text);
  std::map<uint32_t, uint32_t> shared;  // place in kept_ -> shingles in common
  size_t seen = 0;
  for (const uint64_t shingle : shingles) {
    const auto found = first_holder_.find(shingle);
    if (found == first_holder_.end()) continue;
    ++seen;
    ++shared[found->second];
  }
  uint32_t most = 0, most_quoted = 0;
  std::optional<size_t> nearest, quoted;
  for (const auto& [place, count] : shared) {
    const Kept& kept = kept_[place];
    if (count > most) {
      most = count;
      nearest = kept.index;
    }
    if (kept.is_protected && 2 * count >= kept.shingles && count > most_quoted) {
      most_quoted = count;
      quoted = kept.index;
    }
  }
  if (quoted) return quoted;
  if (nearest && 10 * seen >= 7 * shingles.size()) return nearest;

  const auto place = static_cast<uint32_t>(kept_.size());
  uint32_t own = 0;
  for (const uint64_t shingle : shingles) own += first_holder_.emplace(shingle, place).second;
  kept_.push_back({index, own, is_protected});
  return std::nullopt;
}

}  // namespace runtime
