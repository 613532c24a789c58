#include "net/openai_answer.hpp"

#include <ctime>
#include <random>

#include "net/openai_writer.hpp"

namespace net {
namespace {

void append_usage(std::string& out, const Usage& usage) {
  out += "{\"prompt_tokens\":";
  append_integer(out, usage.prompt_tokens);
  out += ",\"completion_tokens\":";
  append_integer(out, usage.output_tokens);
  out += ",\"total_tokens\":";
  append_integer(out, int64_t{usage.prompt_tokens} + usage.output_tokens);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_integer(out, usage.cached_tokens);
  out += "},\"completion_tokens_details\":{\"reasoning_tokens\":";
  append_integer(out, usage.reasoning_tokens);
  out += "}}";
}

}  // namespace

AnswerHead make_head(const actors::ServiceInfo& info, std::string id) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a over what decides the bytes of an answer
  for (const std::string& part :
       {info.model_path, std::to_string(info.weight_bytes), info.kernel_target, info.kv_dtype})
    for (const char c : part + '\n') hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  AnswerHead head;
  head.id = std::move(id);
  head.created = static_cast<int64_t>(std::time(nullptr));
  head.fingerprint = "fp_" + std::to_string(hash);
  return head;
}

std::string random_hex(int words) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::random_device device;
  std::string out;
  for (int i = 0; i < words; ++i) {
    uint32_t word = device();
    for (int digit = 0; digit < 8; ++digit, word >>= 4) out += kHex[word & 15];
  }
  return out;
}

AnswerBase::AnswerBase(AnswerHead head, std::string_view object, std::string_view chunk_object,
                       uint32_t choices)
    : head_(std::move(head)),
      choices_(choices),
      body_begin_(envelope(object)),
      chunk_begin_(envelope(chunk_object)) {}

std::string AnswerBase::envelope(std::string_view object) const {
  std::string out = "{\"id\":";
  append_quoted(out, head_.id);
  out += ",\"object\":";
  append_quoted(out, object);
  out += ",\"created\":";
  append_integer(out, head_.created);
  out += ",\"model\":";
  append_quoted(out, head_.model);
  out += ",\"system_fingerprint\":";
  append_quoted(out, head_.fingerprint);
  out += ",\"choices\":[";
  return out;
}

std::string AnswerBase::begin_chunk(uint32_t choice) const {
  std::string chunk;
  chunk.reserve(chunk_begin_.size() + 192);  // a one-token delta fits
  chunk += chunk_begin_;
  chunk += "{\"index\":";
  append_integer(chunk, choice);
  return chunk;
}

void AnswerBase::end_chunk(std::string& chunk) const {
  chunk += head_.include_usage ? "}],\"usage\":null}" : "}]}";
}

void AnswerBase::handle(const actors::SinkEvent& event, Chunks* chunks) {
  if (const auto* start = std::get_if<actors::Accepted>(&event)) accepted(*start, chunks);
  if (const auto* piece = std::get_if<actors::Delta>(&event);
      piece != nullptr && piece->choice < choices_)
    delta(*piece, chunks);
  if (const auto* end = std::get_if<actors::ChoiceDone>(&event);
      end != nullptr && end->choice < choices_) {
    usage_.reasoning_tokens += end->reasoning_tokens;
    choice_done(*end, chunks);
  }
  if (const auto* done = std::get_if<actors::Done>(&event)) {
    usage_.prompt_tokens = done->prompt_tokens;
    usage_.cached_tokens = done->cached_tokens;
    usage_.output_tokens = done->output_tokens;
  }
}

void AnswerBase::stream(const actors::SinkEvent& event, std::vector<std::string>& payloads) {
  handle(event, &payloads);
  const auto* failure = std::get_if<actors::Failed>(&event);
  if (failure != nullptr)
    payloads.push_back(error_json(failure->error, http_status(failure->error.code)));
  const bool done = std::holds_alternative<actors::Done>(event);
  if (done && head_.include_usage) {
    std::string chunk = chunk_begin_ + "],\"usage\":";
    append_usage(chunk, usage_);
    chunk += '}';
    payloads.push_back(std::move(chunk));
  }
  if (done || failure != nullptr) payloads.push_back("[DONE]");
}

void AnswerBase::collect(const actors::SinkEvent& event) { handle(event, nullptr); }

std::string AnswerBase::body() {
  std::string out = body_begin_;
  for (uint32_t choice = 0; choice < choices_; ++choice) {
    if (choice > 0) out += ',';
    append_choice(out, choice);
  }
  out += "],\"usage\":";
  append_usage(out, usage_);
  out += '}';
  return out;
}

std::string_view finish_word(const actors::ChoiceDone& done) {
  if (done.reason == runtime::FinishReason::kLength) return "length";
  return done.tool_calls ? "tool_calls" : "stop";
}

void append_finish(std::string& out, const actors::ChoiceDone& done) {
  out += ",\"finish_reason\":";
  append_quoted(out, finish_word(done));
  out += ",\"matched_stop\":";
  if (done.stop_text)
    append_quoted(out, *done.stop_text);
  else if (done.stop_id)
    append_integer(out, *done.stop_id);
  else
    out += "null";
}

}  // namespace net
