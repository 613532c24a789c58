// Cuts text into the pieces that byte-pair encoding never merges across: words
// with their leading blank or punctuation mark, runs of Han characters, numbers of up to three
// digits, punctuation, white space.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace runtime {

class Pretokenizer {
 public:
  struct Limits {
    size_t slice_characters = 400'000;  // longer text is cut before the pattern sees it
    size_t run_characters = 25'000;     // as are longer runs of white space, or of anything else
  };

  Pretokenizer();  // throws std::runtime_error when PCRE2 cannot compile the pattern
  explicit Pretokenizer(Limits limits);
  ~Pretokenizer();

  // Appends the pieces of `text`, which must be valid UTF-8; joined they are the text. Safe to call
  // from many threads.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Pattern;
  void match_slice(std::string_view slice, std::vector<std::string_view>& pieces) const;

  Limits limits_;
  std::unique_ptr<const Pattern> pattern_;
};

}  // namespace runtime
