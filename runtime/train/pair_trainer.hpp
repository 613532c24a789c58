// Learns a byte-pair vocabulary: starting from single bytes, the most frequent pair of neighbours
// inside a pre-tokenized piece becomes the next token, again and again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pretokenizer.hpp"

namespace runtime {

class PairTrainer {
 public:
  // Counts the pieces of valid UTF-8. Those with a digit are left out: digits never merge.
  void add(std::string_view text);

  // The tokens by rank, `ranks` of them (256 or more): the 256 bytes first. Of pairs that are
  // equally frequent the one of lower ranks comes first, left before right. Throws
  // std::runtime_error when the text does not hold that many pairs.
  std::vector<std::string> train(uint32_t ranks) const;

 private:
  Pretokenizer pretokenizer_;
  std::map<std::string, uint64_t, std::less<>> pieces_;  // how often each came
};

}  // namespace runtime
