#include "runtime/bpe.hpp"

#include <algorithm>
#include <queue>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

// A pair of neighbouring parts that form a token. Stale once its parts changed: then its left part
// is gone or its end moved.
struct Candidate {
  uint64_t key = 0;  // rank << 32 | start: the order of merging
  uint32_t end = 0;  // one past the pair's last byte
  uint32_t start() const { return static_cast<uint32_t>(key); }
  bool operator>(const Candidate& other) const { return key > other.key; }
};

// Parts::next of a part that was joined to its left neighbour: no part ends at byte 0.
constexpr uint32_t kJoined = 0;

// The parts of one piece as a linked list over byte offsets: the part at i spans [i, next[i]).
struct Parts {
  explicit Parts(uint32_t bytes) : next(bytes), previous(bytes + size_t{1}) {
    for (uint32_t i = 0; i < bytes; ++i) {
      next[i] = i + 1;
      previous[i + size_t{1}] = i;
    }
  }
  std::vector<uint32_t> next, previous;
};

}  // namespace

BytePairEncoder::BytePairEncoder(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  ranks_.reserve(tokens_.size());
  for (size_t rank = 0; rank < tokens_.size(); ++rank) {
    if (tokens_[rank].empty()) continue;
    longest_bytes_ = std::max(longest_bytes_, tokens_[rank].size());
    const bool distinct = ranks_.emplace(tokens_[rank], static_cast<TokenId>(rank)).second;
    VERIFY(distinct);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    VERIFY(find({&text, 1}).has_value());
  }
}

std::optional<TokenId> BytePairEncoder::find(std::string_view bytes) const {
  const auto found = ranks_.find(bytes);
  if (found == ranks_.end()) return std::nullopt;
  return found->second;
}

std::string_view BytePairEncoder::bytes(TokenId rank) const {
  if (rank < 0 || static_cast<size_t>(rank) >= tokens_.size()) return {};
  return tokens_[static_cast<size_t>(rank)];
}

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  if (const auto whole = find(piece)) {
    out.push_back(*whole);
    return;
  }
  merge(piece, out);
}

void BytePairEncoder::merge(std::string_view piece, std::vector<TokenId>& out) const {
  const auto bytes = static_cast<uint32_t>(piece.size());
  Parts parts(bytes);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](uint32_t start) {
    const uint32_t middle = parts.next[start];
    if (middle == bytes) return;
    const uint32_t end = parts.next[middle];
    if (const auto rank = find(piece.substr(start, end - start))) {
      candidates.push({static_cast<uint64_t>(static_cast<uint32_t>(*rank)) << 32 | start, end});
    }
  };
  for (uint32_t i = 0; i < bytes; ++i) consider(i);

  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const uint32_t start = best.start();
    const uint32_t middle = parts.next[start];
    if (middle == kJoined || middle == bytes || parts.next[middle] != best.end) continue;
    parts.next[start] = best.end;
    parts.next[middle] = kJoined;
    parts.previous[best.end] = start;
    consider(start);
    if (start > 0) consider(parts.previous[start]);
  }
  for (uint32_t i = 0; i < bytes; i = parts.next[i]) {
    out.push_back(*find(piece.substr(i, parts.next[i] - i)));
  }
}

}  // namespace runtime
