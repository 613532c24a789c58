// tiktoken byte-pair encoding with a PCRE2 pre-tokenizer. Immutable after load:
// shared by threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/detokenizer.hpp"
#include "runtime/request.hpp"

namespace runtime {

// Asked now and then during long work, which ends at once when the answer is no. Empty: not asked.
using KeepGoing = std::function<bool()>;

class Tokenizer {
 public:
  // Reads DIR/tiktoken.model and DIR/tokenizer_config.json. Throws std::runtime_error naming file
  // and line. nullptr when the directory has no tiktoken.model (token-id prompts only).
  static std::shared_ptr<const Tokenizer> load(const std::string& directory);
  ~Tokenizer();

  // Text never yields a control id: a literal "<|open|>" becomes ordinary tokens. Invalid UTF-8 is
  // encoded byte by byte. Once keep_going says no, the ids are incomplete.
  void encode_text(std::string_view text, std::vector<TokenId>& out,
                   const KeepGoing& keep_going = {}) const;
  size_t longest_token_bytes() const;  // of those that text can become
  std::optional<TokenId> special(
      std::string_view name) const;  // by its name in tokenizer_config.json
  bool is_special(TokenId id) const;
  // Bytes of a token: raw bytes of a base rank, or the name of a special token. Empty for an
  // unknown id.
  std::string_view bytes(TokenId id) const;
  uint32_t size() const;  // one more than the largest id

 private:
  Tokenizer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace runtime
