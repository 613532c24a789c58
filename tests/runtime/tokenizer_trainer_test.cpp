// The tokenizer that is learnt from a corpus: readable by the reader, reversible, no merged digits.
#include "runtime/train/tokenizer_trainer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/pair_trainer.hpp"
#include "tests/support/temporary_directory.hpp"

TEST_CASE("The most frequent pair merges first, and equal ones by rank", "[runtime][train]") {
  runtime::PairTrainer trainer;
  trainer.add("abc abc abc xy xy");
  const auto tokens = trainer.train(261);
  // Pieces: "abc", " abc" twice, " xy" twice. "ab" and "bc" came three times each.
  REQUIRE(tokens.size() == 261);
  CHECK(std::vector(tokens.begin() + 256, tokens.end()) ==
        std::vector<std::string>{"ab", "abc", " x", " abc", " xy"});
}

TEST_CASE("Counts that are kept up to date find the pairs that counting afresh finds",
          "[runtime][train]") {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    state = state * 1664525u + 1013904223u;
    text += static_cast<char>('a' + (state >> 24) % 4);
    if ((state >> 16) % 5 == 0) text += ' ';
  }
  runtime::PairTrainer trainer;
  trainer.add(text);
  // The oracle: words as lists of strings, every pair counted again before each merge.
  std::vector<std::vector<std::string>> words;
  std::vector<std::string> learnt;
  for (int byte = 0; byte < 256; ++byte) learnt.emplace_back(1, static_cast<char>(byte));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin + 1), text.size());
    words.emplace_back();
    for (size_t i = begin; i < end; ++i) words.back().push_back(text.substr(i, 1));
    begin = end;
  }
  const auto rank = [&](const std::string& token) {
    return std::find(learnt.begin(), learnt.end(), token) - learnt.begin();
  };
  while (learnt.size() < 300) {
    std::map<std::pair<std::ptrdiff_t, std::ptrdiff_t>, int> counts;
    for (const auto& word : words)
      for (size_t i = 1; i < word.size(); ++i) ++counts[{rank(word[i - 1]), rank(word[i])}];
    const auto best = std::max_element(
        counts.begin(), counts.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });  // the first of equals
    const std::string left = learnt[static_cast<size_t>(best->first.first)];
    const std::string right = learnt[static_cast<size_t>(best->first.second)];
    if (rank(left + right) == static_cast<std::ptrdiff_t>(learnt.size()))
      learnt.push_back(left + right);
    for (auto& word : words) {
      for (size_t i = 1; i < word.size(); ++i) {
        if (word[i - 1] != left || word[i] != right) continue;
        word[i - 1] += right;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  CHECK(trainer.train(300) == learnt);
}

TEST_CASE("A learnt tokenizer is read back, reverses its text and never merges digits",
          "[runtime][train]") {
  const support::TemporaryDirectory directory;
  const std::string text =
      "The year 2024 and the year 2025 were years of the 2024 kind, naïve — “quoted”.\n\n    "
      "for year in years:\n        print(year)\n";
  runtime::write_corpus_file(runtime::corpus_file(directory.path(), false),
                             {{"package", "/path", text + text}});
  runtime::TokenizerOptions options{directory.path(), directory.file("tokenizer"), 300};
  runtime::train_tokenizer(options);
  const auto tokenizer = runtime::Tokenizer::load(options.directory);
  REQUIRE(tokenizer != nullptr);
  CHECK(tokenizer->size() == 300 + 256);
  CHECK(tokenizer->special("[BOS]") == 300);
  CHECK(tokenizer->special("<|open|>") == 303);
  std::vector<runtime::TokenId> ids;
  tokenizer->encode_text(text, ids);
  CHECK(ids.size() < text.size());
  std::string back;
  for (const auto id : ids) {
    const auto bytes = tokenizer->bytes(id);
    back += bytes;
    const bool has_digit = bytes.find_first_of("0123456789") != bytes.npos;
    CHECK((!has_digit || bytes.size() == 1));
  }
  CHECK(back == text);
}

TEST_CASE("Too little text for the ranks is said so", "[runtime][train]") {
  runtime::PairTrainer trainer;
  trainer.add("ab 12");
  CHECK_THROWS_WITH(trainer.train(300), Catch::Contains("257 at most"));
}
