#include "net/openai_logprobs.hpp"

#include <algorithm>

#include "net/openai_writer.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

void append_bytes(std::string& out, runtime::TokenId id, const TokenNames& names) {
  if (!names.has_bytes()) {
    out += "null";
    return;
  }
  out += '[';
  bool first = true;
  for (const char c : names.bytes(id)) {
    if (!first) out += ',';
    first = false;
    append_integer(out, static_cast<uint8_t>(c));
  }
  out += ']';
}

void append_token(std::string& out, const runtime::TokenLogprob& token, const TokenNames& names) {
  out += "{\"token\":";
  append_quoted(out, names.name(token.token));
  out += ",\"logprob\":";
  append_float(out, token.logprob);
  out += ",\"bytes\":";
  append_bytes(out, token.token, names);
}

}  // namespace

TokenNames::TokenNames(std::shared_ptr<const runtime::Tokenizer> tokenizer, bool as_ids)
    : tokenizer_(std::move(tokenizer)), as_ids_(as_ids) {}

std::string TokenNames::name(runtime::TokenId id) const {
  if (as_ids_ || tokenizer_ == nullptr) return "token_id:" + std::to_string(id);
  const std::string_view text = tokenizer_->bytes(id);
  if (runtime::find_invalid_utf8(text) == std::string_view::npos) return std::string(text);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "bytes:";
  for (const char c : text) {
    out += "\\x";
    out += kHex[static_cast<uint8_t>(c) >> 4];
    out += kHex[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

std::string_view TokenNames::bytes(runtime::TokenId id) const {
  return tokenizer_ == nullptr ? std::string_view() : tokenizer_->bytes(id);
}

bool TokenNames::is_special(runtime::TokenId id) const {
  return tokenizer_ != nullptr && tokenizer_->is_special(id);
}

void append_chat_logprobs(std::string& out, const std::vector<runtime::PositionLogprobs>& positions,
                          const TokenNames& names) {
  bool first = true;
  for (const runtime::PositionLogprobs& position : positions) {
    if (!first) out += ',';
    first = false;
    append_token(out, position.chosen, names);
    out += ",\"top_logprobs\":[";
    for (size_t i = 0; i < position.top.size(); ++i) {
      if (i > 0) out += ',';
      append_token(out, position.top[i], names);
      out += '}';
    }
    out += "]}";
  }
}

void CompletionLogprobs::add(runtime::TokenId token, const runtime::PositionLogprobs* position,
                             uint32_t offset, const TokenNames& names) {
  if (!empty())
    for (std::string* list : {&tokens, &token_logprobs, &top_logprobs, &text_offset}) *list += ',';
  append_quoted(tokens, names.name(token));
  append_integer(text_offset, offset);
  if (position == nullptr) {
    token_logprobs += "null";
    top_logprobs += "null";
    return;
  }
  append_float(token_logprobs, position->chosen.logprob);
  top_logprobs += '{';
  std::vector<std::string> written;  // two ids may share a name: the likelier one keeps it
  const auto entry = [&](const runtime::TokenLogprob& candidate) {
    std::string name = names.name(candidate.token);
    if (std::find(written.begin(), written.end(), name) != written.end()) return;
    if (!written.empty()) top_logprobs += ',';
    append_quoted(top_logprobs, name);
    top_logprobs += ':';
    append_float(top_logprobs, candidate.logprob);
    written.push_back(std::move(name));
  };
  for (const runtime::TokenLogprob& candidate : position->top) entry(candidate);
  entry(position->chosen);  // the chosen token is always listed
  top_logprobs += '}';
}

void CompletionLogprobs::append(const CompletionLogprobs& more) {
  if (more.empty()) return;
  const bool comma = !empty();
  const auto join = [&](std::string& list, const std::string& tail) {
    list += (comma ? "," : "") + tail;
  };
  join(tokens, more.tokens);
  join(token_logprobs, more.token_logprobs);
  join(top_logprobs, more.top_logprobs);
  join(text_offset, more.text_offset);
}

void CompletionLogprobs::append_object(std::string& out) const {
  out += "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + token_logprobs +
         "],\"top_logprobs\":[" + top_logprobs + "],\"text_offset\":[" + text_offset + "]}";
}

}  // namespace net
