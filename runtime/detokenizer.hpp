// Ids to text, one at a time.
#pragma once

#include <memory>
#include <string>

#include "runtime/request.hpp"
#include "runtime/utf8.hpp"

namespace runtime {

class Tokenizer;

// Holds back an incomplete UTF-8 sequence; invalid bytes become U+FFFD. The pieces joined are the
// text of all ids at once.
class Detokenizer {
 public:
  // skip_special: special tokens add nothing to the text, else their names.
  explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);
  std::string push(TokenId id);  // text that became complete
  std::string finish();          // what is left, as a replacement character

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  Utf8Stream stream_;
};

}  // namespace runtime
