#include "net/trace/finished_request.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "net/trace/block_hash.hpp"

namespace net {
namespace {

void add_text(memory::PrefixMixer& mixer, std::string_view text) {
  mixer.add(text.size());  // so that two texts are not one
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(text.size(), sizeof(uint64_t)))) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
    mixer.add(word);
  }
}

memory::PrefixHash hash_of(memory::PrefixHash root, std::string_view text) {
  memory::PrefixMixer mixer(root);
  add_text(mixer, text);
  return mixer.finish();
}

std::string hidden(memory::PrefixHash root, const std::string& text) {
  if (text.empty()) return text;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(hash_of(root, text).a));
  return digits;
}

// Reasoning is left out: clients may drop it from what they send again.
std::vector<uint64_t> message_hashes(const runtime::ChatPrompt& chat, memory::PrefixHash root) {
  std::vector<uint64_t> hashes;
  for (const runtime::ChatMessage& message : chat.messages) {
    memory::PrefixMixer mixer(root);
    for (const std::string* text :
         {&message.role, &message.name, &message.content, &message.tool_call_id})
      add_text(mixer, *text);
    for (const runtime::ToolCall& call : message.tool_calls) {
      add_text(mixer, call.name);
      add_text(mixer, call.arguments);
    }
    root = mixer.finish();
    hashes.push_back(root.a >> 11);  // 53 bits, as blocks have
  }
  return hashes;
}

RecordedPrompt record_prompt(runtime::Prompt content, const runtime::SharedTokens& tokens,
                             const RecordStyle& style, memory::PrefixHash root) {
  RecordedPrompt prompt;
  prompt.tokens = static_cast<uint32_t>(tokens.size());
  prompt.blocks = block_hashes(tokens.ids(), style.block_tokens, root);
  if (const auto* chat = std::get_if<runtime::ChatPrompt>(&content))
    prompt.messages = message_hashes(*chat, root);
  if (!style.hashed) prompt.content = std::move(content);
  return prompt;
}

RecordedChoice record_choice(FinishedRequest::Choice choice, uint32_t prompt,
                             const runtime::SharedTokens& tokens, const RecordStyle& style,
                             memory::PrefixHash root) {
  RecordedChoice record;
  record.prompt = prompt;
  record.tokens = choice.tokens;
  record.finish = std::move(choice.finish);
  std::vector<runtime::TokenId> both = tokens.ids();
  both.insert(both.end(), choice.ids.begin(), choice.ids.end());
  const auto blocks = block_hashes(both, style.block_tokens, root);
  record.blocks.assign(
      blocks.begin() + static_cast<std::ptrdiff_t>(tokens.size() / style.block_tokens),
      blocks.end());
  if (!style.hashed) record.ids = std::move(choice.ids);
  return record;
}

}  // namespace

RequestRecord record_of(FinishedRequest request, const RecordStyle& style) {
  const memory::PrefixHash secret = memory::root_prefix(style.secret);
  // Requests of different salts share nothing.
  const memory::PrefixHash root = hash_of(secret, request.asked.cache_salt);
  RequestRecord record;
  record.arrival_s = request.arrival_s;
  record.first_token_s = request.first_token_s;
  record.end_s = request.end_s;
  record.endpoint = request.asked.parse_chat ? "chat" : "completion";
  record.id = style.hashed ? hidden(secret, request.asked.rid) : request.asked.rid;
  record.session = style.hashed ? hidden(secret, request.asked.session) : request.asked.session;
  record.cached_tokens = request.cached_tokens;
  for (size_t i = 0; i < request.prompts.size(); ++i)
    record.prompts.push_back(
        record_prompt(std::move(request.asked.prompts[i]), request.prompts[i], style, root));
  for (size_t i = 0; i < request.choices.size(); ++i) {
    const auto prompt = static_cast<uint32_t>(i / request.asked.n);
    record.choices.push_back(
        record_choice(std::move(request.choices[i]), prompt, request.prompts[prompt], style, root));
  }
  return record;
}

}  // namespace net
