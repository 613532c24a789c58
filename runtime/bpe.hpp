// Byte-pair encoding of one pre-tokenized piece: while two neighbouring parts together form a
// token, the pair of lowest rank is joined, the leftmost first. A token's rank is its id.
// Invariant: every single byte is a token, so any bytes can be encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/request.hpp"

namespace runtime {

class BytePairEncoder {
 public:
  // tokens[rank] holds the token's bytes; an empty entry is an unused rank. Entries are distinct
  // and hold all 256 bytes.
  explicit BytePairEncoder(std::vector<std::string> tokens);
  BytePairEncoder(const BytePairEncoder&) = delete;  // the map's keys point into tokens_
  BytePairEncoder& operator=(const BytePairEncoder&) = delete;

  // O(n log n) in the piece's bytes. A piece that is a token as a whole becomes that token,
  // whatever its merges would give.
  void encode(std::string_view piece, std::vector<TokenId>& out) const;
  std::optional<TokenId> find(std::string_view bytes) const;
  std::string_view bytes(TokenId rank) const;              // empty when unused
  size_t longest_bytes() const { return longest_bytes_; }  // of any token
  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }

 private:
  void merge(std::string_view piece, std::vector<TokenId>& out) const;

  std::vector<std::string> tokens_;
  size_t longest_bytes_ = 0;
  std::unordered_map<std::string_view, TokenId> ranks_;
};

}  // namespace runtime
