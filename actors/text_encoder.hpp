// Turns prompts into token ids and refuses what the model cannot take: the last place where a
// request is only text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/prompt_encoding.hpp"
#include "runtime/request.hpp"
#include "runtime/shared_tokens.hpp"
#include "runtime/tokenizer.hpp"

namespace actors {

struct TextLimits {
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;            // prompt + output tokens of one sequence
  std::vector<runtime::TokenId> end_ids;  // the model's own
};

struct EncodedPrompts {
  std::vector<runtime::SharedTokens> prompts;  // shared with every choice
  std::vector<uint32_t> max_tokens;            // per prompt: as asked, or to the end of the context
};

using runtime::encoding_stopped;

class TextEncoder {
 public:
  // No tokenizer: only prompts of token ids can be served.
  TextEncoder(std::shared_ptr<const runtime::Tokenizer> tokenizer, TextLimits limits);

  // Also completes request.sampling.stop_ids with the model's end ids. Errors name the field. Ends
  // with encoding_stopped() once `wanted` says no.
  kernels::Result<EncodedPrompts> encode(runtime::GenerateRequest& request,
                                         const runtime::KeepGoing& wanted = {}) const;

 private:
  using Ids = std::vector<runtime::TokenId>;
  bool known(runtime::TokenId id) const;
  std::string range() const;  // of the ids, for messages
  kernels::Result<void> check_ids(const Ids& ids, const std::string& list) const;
  kernels::Result<void> check_sampling(const runtime::SamplingParams& sampling) const;
  kernels::Result<uint32_t> output_limit(const Ids& ids,
                                         const runtime::GenerateRequest& request) const;

  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
  TextLimits limits_;
};

}  // namespace actors
