// Log-probabilities as the two APIs write them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/step_plan.hpp"
#include "runtime/tokenizer.hpp"

namespace net {

// How a token is named in log-probabilities.
class TokenNames {
 public:
  // No tokenizer: every token is "token_id:N".
  TokenNames(std::shared_ptr<const runtime::Tokenizer> tokenizer, bool as_ids);
  // The token's text; a token that is only part of a character is named by its bytes
  // ("bytes:\xe2\x82").
  std::string name(runtime::TokenId id) const;
  std::string_view bytes(runtime::TokenId id) const;
  bool is_special(runtime::TokenId id) const;
  bool has_bytes() const { return tokenizer_ != nullptr; }

 private:
  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
  bool as_ids_;
};

// Chat: {"token", "logprob", "bytes", "top_logprobs": [...]}, one per position, comma-separated.
void append_chat_logprobs(std::string& out, const std::vector<runtime::PositionLogprobs>& positions,
                          const TokenNames& names);

// Completions: the four parallel arrays of one choice, as JSON fragments that grow token by token.
struct CompletionLogprobs {
  std::string tokens, token_logprobs, top_logprobs, text_offset;  // comma-separated elements
  bool empty() const { return tokens.empty(); }
  // `position` null: a token without a log-probability (the first of a prompt).
  void add(runtime::TokenId token, const runtime::PositionLogprobs* position, uint32_t offset,
           const TokenNames& names);
  void append(const CompletionLogprobs& more);
  void append_object(std::string& out) const;
};

}  // namespace net
