#include "runtime/prompt_encoding.hpp"

#include <string>
#include <utility>

#include "runtime/xtml_template.hpp"

namespace runtime {

using kernels::invalid;
using kernels::Result;
using Ids = std::vector<TokenId>;

namespace {

Result<void> check_bytes(size_t bytes, const Tokenizer& tokenizer, uint32_t context_length,
                         const char* field) {
  const uint64_t longest = tokenizer.longest_token_bytes();
  if (bytes <= context_length * longest) return {};
  return invalid(std::string(field) + ": this server's context is " +
                     std::to_string(context_length) + " tokens of at most " +
                     std::to_string(longest) + " bytes, the text has " + std::to_string(bytes) +
                     " bytes",
                 field);
}

Result<Ids> encode(const Tokenizer& tokenizer, const Prompt& prompt, uint32_t context_length,
                   const KeepGoing& keep_going) {
  const char* const field = field_of(prompt);
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    const auto fits = check_bytes(text->size(), tokenizer, context_length, field);
    if (!fits) return fits.error();
    Ids ids;
    tokenizer.encode_text(*text, ids, keep_going);
    return ids;
  }
  const auto segments = render_xtml(std::get<ChatPrompt>(prompt));
  if (!segments) return segments.error();
  size_t bytes = 0;
  for (const Segment& segment : *segments) bytes += segment.control ? 0 : segment.text.size();
  const auto fits = check_bytes(bytes, tokenizer, context_length, field);
  if (!fits) return fits.error();
  return encode_segments(tokenizer, *segments, keep_going);
}

}  // namespace

const char* field_of(const Prompt& prompt) {
  return std::holds_alternative<ChatPrompt>(prompt) ? "messages" : "prompt";
}

kernels::Error encoding_stopped() {
  return {kernels::ErrorCode::kCancelled, "the request ended before its prompt was encoded", {}};
}

Result<Ids> encode_prompt(const Tokenizer* tokenizer, const Prompt& prompt, uint32_t context_length,
                          const KeepGoing& keep_going) {
  if (const auto* ids = std::get_if<Ids>(&prompt)) return *ids;
  if (tokenizer == nullptr) {
    const char* const field = field_of(prompt);
    return invalid(
        std::string(field) + ": this model has no tokenizer; send the prompt as token ids", field);
  }
  auto ids = encode(*tokenizer, prompt, context_length, keep_going);
  if (ids && keep_going && !keep_going()) return encoding_stopped();
  return ids;
}

}  // namespace runtime
