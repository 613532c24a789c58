#include "actors/text_encoder.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace actors {

using kernels::invalid;
using kernels::Result;
using runtime::TokenId;

TextEncoder::TextEncoder(std::shared_ptr<const runtime::Tokenizer> tokenizer, TextLimits limits)
    : tokenizer_(std::move(tokenizer)), limits_(std::move(limits)) {}

Result<EncodedPrompts> TextEncoder::encode(runtime::GenerateRequest& request,
                                           const runtime::KeepGoing& wanted) const {
  if (request.prompts.empty()) return invalid("prompt: at least one is needed", "prompt");
  if (request.n == 0) return invalid("n: must be at least 1", "n");
  const char* const field = runtime::field_of(request.prompts.front());
  if (request.parse_chat && tokenizer_ == nullptr) {
    return invalid("messages: this model has no tokenizer; send token ids to /v1/completions",
                   field);
  }
  if (const auto fine = check_sampling(request.sampling); !fine) return fine.error();
  EncodedPrompts encoded;
  for (const runtime::Prompt& prompt : request.prompts) {
    auto ids = runtime::encode_prompt(tokenizer_.get(), prompt, limits_.context_length, wanted);
    if (!ids) return ids.error();
    std::string list = field;
    if (request.prompts.size() > 1)
      list.append("[").append(std::to_string(encoded.prompts.size())).append("]");
    if (ids->empty()) return invalid(list + ": must hold at least one token", list);
    if (const auto fine = check_ids(*ids, list); !fine) return fine.error();
    const auto limit = output_limit(*ids, request);
    if (!limit) return limit.error();
    encoded.prompts.push_back(std::move(*ids));
    encoded.max_tokens.push_back(*limit);
  }
  if (!request.sampling.ignore_eos) {
    auto& stops = request.sampling.stop_ids;
    for (const TokenId id : limits_.end_ids) {
      if (std::find(stops.begin(), stops.end(), id) == stops.end()) stops.push_back(id);
    }
  }
  return encoded;
}

bool TextEncoder::known(TokenId id) const {
  return id >= 0 && static_cast<uint32_t>(id) < limits_.vocab_size;
}

std::string TextEncoder::range() const {
  return "between 0 and " + std::to_string(int64_t{limits_.vocab_size} - 1);
}

Result<void> TextEncoder::check_ids(const Ids& ids, const std::string& list) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (known(ids[i])) continue;
    const std::string name = list + "[" + std::to_string(i) + "]";
    return invalid(name + " must be a token id " + range() + ", got " + std::to_string(ids[i]),
                   name);
  }
  return {};
}

Result<void> TextEncoder::check_sampling(const runtime::SamplingParams& sampling) const {
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (known(id)) continue;
    return invalid(
        "logit_bias must have token ids " + range() + " as its keys, got " + std::to_string(id),
        "logit_bias");
  }
  return check_ids(sampling.stop_ids, "stop_token_ids");
}

Result<uint32_t> TextEncoder::output_limit(const Ids& ids,
                                           const runtime::GenerateRequest& request) const {
  const uint64_t context = limits_.context_length;
  const std::string most = "this server's context is " + std::to_string(context) + " tokens";
  if (request.max_tokens && ids.size() + uint64_t{*request.max_tokens} <= context)
    return *request.max_tokens;
  if (request.max_tokens && ids.size() < context) {
    return invalid("max_tokens: " + most + ", the prompt has " + std::to_string(ids.size()) +
                       " and max_tokens is " + std::to_string(*request.max_tokens) +
                       "; ask for at most " + std::to_string(context - ids.size()),
                   "max_tokens");
  }
  if (ids.size() >= context) {
    const char* const field = runtime::field_of(request.prompts.front());
    return invalid(std::string(field) + ": " + most + ", the prompt has " +
                       std::to_string(ids.size()) + " and leaves no room for output",
                   field);
  }
  const auto room = static_cast<uint32_t>(context - ids.size());
  return request.default_max_tokens == 0 ? room : std::min(room, request.default_max_tokens);
}

}  // namespace actors
