#include "actors/text_encoder.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/sequence_ids.hpp"

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
  if (request.n > kChoicesMax || request.prompts.size() > kChoicesMax / request.n) {
    return invalid("n: " + std::to_string(request.prompts.size()) +
                       " prompts with n = " + std::to_string(request.n) +
                       " are too many choices; one request may have " + std::to_string(kChoicesMax),
                   "n");
  }
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
    if (const auto fine = check_ids(*ids, field); !fine) return fine.error();
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

Result<void> TextEncoder::check_ids(const Ids& ids, const char* field) const {
  if (ids.empty()) return invalid(std::string(field) + ": must hold at least one token", field);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<uint32_t>(ids[i]) < limits_.vocab_size) continue;
    return invalid(std::string(field) + ": token " + std::to_string(i) + " is " +
                       std::to_string(ids[i]) + ", ids must be in [0, " +
                       std::to_string(limits_.vocab_size) + ")",
                   field);
  }
  return {};
}

Result<void> TextEncoder::check_sampling(const runtime::SamplingParams& sampling) const {
  const auto known = [&](TokenId id) {
    return id >= 0 && static_cast<uint32_t>(id) < limits_.vocab_size;
  };
  const std::string range = "ids must be in [0, " + std::to_string(limits_.vocab_size) + ")";
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (!known(id))
      return invalid("logit_bias: " + std::to_string(id) + " is no token, " + range, "logit_bias");
  }
  for (const TokenId id : sampling.stop_ids) {
    if (known(id)) continue;
    return invalid("stop_token_ids: " + std::to_string(id) + " is no token, " + range,
                   "stop_token_ids");
  }
  return {};
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
