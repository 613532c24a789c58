// Looks for stop strings in text that arrives in pieces. A stop string may span pieces, so the
// longest tail that could still become one is held back.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

// The match is the one that ends first; of several ending at one byte, the longest. So it depends
// on the text alone. Invariant: what push() and finish() returned, joined, is the whole text cut at
// the match, however it was cut in pieces.
class StopStrings {
 public:
  // include: the matched stop string stays in the text. Empty strings never match.
  StopStrings(std::vector<std::string> stops, bool include);

  // Returns the text that may be shown now. After a match everything is swallowed.
  std::string push(std::string_view piece);
  // The text ends here (or another kind of text begins): returns what was held back; no match spans
  // this point.
  std::string finish();

  const std::optional<std::string>& matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [size]: length of the longest border of text[0..i]
    size_t progress = 0;           // bytes of `text` that the tail of the input equals
  };
  static void advance(Pattern& pattern, char byte);
  const Pattern* complete() const;  // the longest pattern that ends at the last byte

  std::vector<Pattern> patterns_;
  bool include_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace runtime
