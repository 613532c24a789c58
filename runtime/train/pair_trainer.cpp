#include "runtime/train/pair_trainer.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

using Pair = uint64_t;  // left rank << 32 | right rank

Pair pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

struct Word {
  std::vector<uint32_t> ranks;
  uint64_t count = 0;
};

struct Candidate {
  uint64_t count = 0;
  Pair pair = 0;
  bool operator<(const Candidate& other) const {  // the best is the largest
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

// Invariant: count_[pair] is how often the pair stands in the words, each as often as it came. The
// heap holds every pair with its count or more; a stale entry is corrected when it comes up.
class Merges {
 public:
  void add(std::string_view piece, uint64_t count) {
    Word word{{}, count};
    for (const char c : piece) word.ranks.push_back(static_cast<unsigned char>(c));
    words_.push_back(std::move(word));
    count_pairs(static_cast<uint32_t>(words_.size() - 1));
  }

  // False when no pair is left.
  bool best(Pair& pair) {
    push_grown();
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const auto found = count_.find(top.pair);
      if (found == count_.end() || found->second == 0) continue;
      if (found->second == top.count) {
        pair = top.pair;
        return true;
      }
      heap_.push({found->second, top.pair});
    }
    return false;
  }

  void merge(Pair pair, uint32_t merged) {
    const auto left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    for (const uint32_t index : std::exchange(holders_[pair], {})) {
      Word& word = words_[index];
      uncount_pairs(word);
      size_t kept = 0;
      for (size_t i = 0; i < word.ranks.size(); ++kept) {
        const bool is_pair =
            i + 1 < word.ranks.size() && word.ranks[i] == left && word.ranks[i + 1] == right;
        word.ranks[kept] = is_pair ? merged : word.ranks[i];
        i += is_pair ? 2 : 1;
      }
      word.ranks.resize(kept);
      count_pairs(index);
    }
    VERIFY(count_[pair] == 0);
  }

 private:
  void count_pairs(uint32_t index) {
    const Word& word = words_[index];
    for (size_t i = 1; i < word.ranks.size(); ++i) {
      const Pair pair = pair_of(word.ranks[i - 1], word.ranks[i]);
      count_[pair] += word.count;
      auto& holders = holders_[pair];
      if (holders.empty() || holders.back() != index) holders.push_back(index);
      grown_.push_back(pair);
    }
  }

  void uncount_pairs(const Word& word) {
    for (size_t i = 1; i < word.ranks.size(); ++i)
      count_[pair_of(word.ranks[i - 1], word.ranks[i])] -= word.count;
  }

  void push_grown() {
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair pair : grown_) heap_.push({count_[pair], pair});
    grown_.clear();
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, uint64_t> count_;
  std::unordered_map<Pair, std::vector<uint32_t>> holders_;  // words that had it when counted
  std::vector<Pair> grown_;                                  // since the heap last heard
  std::priority_queue<Candidate> heap_;
};

bool has_digit(std::string_view piece) {
  return std::any_of(piece.begin(), piece.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void PairTrainer::add(std::string_view text) {
  std::vector<std::string_view> pieces;
  pretokenizer_.split(text, pieces);
  for (const std::string_view piece : pieces) {
    if (has_digit(piece)) continue;
    const auto found = pieces_.find(piece);
    if (found != pieces_.end()) {
      ++found->second;
    } else {
      pieces_.emplace(piece, 1);
    }
  }
}

std::vector<std::string> PairTrainer::train(uint32_t ranks) const {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, uint32_t> rank_of;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  Merges merges;
  for (const auto& [piece, count] : pieces_) merges.add(piece, count);
  while (tokens.size() < ranks) {
    Pair pair = 0;
    if (!merges.best(pair)) {
      throw std::runtime_error("ranks is " + std::to_string(ranks) + "; the text holds pairs for " +
                               std::to_string(tokens.size()) + " at most");
    }
    std::string bytes = tokens[pair >> 32] + tokens[static_cast<uint32_t>(pair)];
    // Bytes that already are a token, cut elsewhere, join it: the encoder does the same.
    const auto [known, is_new] = rank_of.try_emplace(bytes, static_cast<uint32_t>(tokens.size()));
    merges.merge(pair, known->second);
    if (is_new) tokens.push_back(std::move(bytes));
  }
  return tokens;
}

}  // namespace runtime
