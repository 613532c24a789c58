#include "net/replay/live_requests.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>

#include "net/trace/chat_json.hpp"
#include "runtime/canonical_json.hpp"

namespace net {

namespace json = boost::json;

namespace {

constexpr std::string_view kConsonants = "bdfghklmnprstvwz", kVowels = "aeio";

// A word of two syllables; 64 syllables make kWords of them.
void append_word(uint32_t index, std::string& out) {
  for (const uint32_t syllable : {index / 64 % 64, index % 64}) {
    out.push_back(kConsonants[syllable / 4]);
    out.push_back(kVowels[syllable % 4]);
  }
}

std::string ids_json(const std::vector<runtime::TokenId>& ids) {
  std::string out = "[";
  out.reserve(ids.size() * 7 + 2);
  char digits[16];
  for (const runtime::TokenId id : ids) {
    if (out.size() > 1) out.push_back(',');
    out.append(digits, std::to_chars(digits, digits + sizeof digits, id).ptr);
  }
  out.push_back(']');
  return out;
}

// A body whose long part, `name`, is JSON already.
std::string body_of(const LiveRequestOptions& options, std::string_view name,
                    std::string_view value, uint32_t max_tokens) {
  std::string out = "{\"model\":" + runtime::json_quoted(options.model) + ",\"";
  out.append(name).append("\":").append(value);
  out += ",\"max_tokens\":" + std::to_string(max_tokens);
  out += ",\"stream\":true,\"stream_options\":{\"include_usage\":true}";
  if (options.ignore_eos) out += ",\"ignore_eos\":true";
  return out + "}";
}

// All of a conversation, or what a request of it asked.
json::object chat_fields(const Trace& trace, const TraceRequest& request,
                         const runtime::ChatPrompt& chat) {
  if (trace.format != TraceFormat::kMessages) return chat_json(chat);
  runtime::ChatPrompt asked = chat;
  asked.messages.resize(std::min<size_t>(request.messages, chat.messages.size()));
  json::object fields = chat_json(asked);
  fields.stable_erase("reasoning_effort");  // it was not recorded
  return fields;
}

}  // namespace

LiveRequests::LiveRequests(const Trace& trace, const PromptSource& prompts,
                           const LiveRequestOptions& options)
    : trace_(trace), prompts_(prompts), options_(options) {}

HttpAsk LiveRequests::ask(uint32_t index) const {
  const TraceRequest& request = trace_.requests[index];
  if (!request.text || prompts_.block_tokens() != trace_.block_tokens) return made_up(index);
  const uint32_t max_tokens = prompts_.output_tokens(index);
  const runtime::Prompt& prompt = trace_.texts[*request.text].prompt;
  if (const auto* chat = std::get_if<runtime::ChatPrompt>(&prompt)) {
    json::object body{{"model", options_.model}};
    for (auto& [key, value] : chat_fields(trace_, request, *chat)) body[key] = std::move(value);
    body["max_tokens"] = max_tokens;
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    if (options_.ignore_eos) body["ignore_eos"] = true;
    return {"/v1/chat/completions", json::serialize(body)};
  }
  const auto* text = std::get_if<std::string>(&prompt);
  return {"/v1/completions",
          body_of(options_, "prompt",
                  text != nullptr ? runtime::json_quoted(*text)
                                  : ids_json(std::get<std::vector<runtime::TokenId>>(prompt)),
                  max_tokens)};
}

HttpAsk LiveRequests::made_up(uint32_t request) const {
  const uint32_t max_tokens = prompts_.output_tokens(request);
  if (options_.chat) {
    std::string message = R"([{"role":"user","content":")";
    message += words(request);
    message += "\"}]";
    return {"/v1/chat/completions", body_of(options_, "messages", message, max_tokens)};
  }
  std::string prompt = "\"";
  if (options_.text) {
    prompt += words(request);
    prompt += "\"";
  } else {
    prompt = ids_json(prompts_.prompt(request));
  }
  return {"/v1/completions", body_of(options_, "prompt", prompt, max_tokens)};
}

std::string LiveRequests::words(uint32_t request) const {
  std::string out;
  for (const runtime::TokenId id : prompts_.prompt(request)) {
    append_word(static_cast<uint32_t>(id), out);
    out.push_back(' ');
  }
  return out;
}

}  // namespace net
