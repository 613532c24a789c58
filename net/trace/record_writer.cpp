// Records as lines. What a chat prompt is written as could be sent to a server again.
#include "net/trace/chat_json.hpp"
#include "net/trace/request_record.hpp"
#include "runtime/canonical_json.hpp"

namespace net {
namespace {

constexpr runtime::JsonStyle kCompact{",", ":", false};

template <class Items, class Write>
std::string list_json(const Items& items, Write write) {
  std::string list = "[";
  for (const auto& item : items) {
    if (list.size() > 1) list += ',';
    list += write(item);
  }
  list += ']';
  return list;
}

// An object under way: its members in the order they are added.
class Line {
 public:
  void text(std::string_view name, std::string_view value) {
    raw(name, runtime::json_quoted(value));
  }
  void number(std::string_view name, double value) { raw(name, runtime::json_number(value)); }
  void count(std::string_view name, uint64_t value) { raw(name, std::to_string(value)); }
  template <class Number>
  void counts(std::string_view name, const std::vector<Number>& values) {
    raw(name, list_json(values, [](Number value) { return std::to_string(value); }));
  }
  void raw(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    text_ += runtime::json_quoted(name);
    text_ += ':';
    text_ += value;
  }
  std::string end() {
    text_ += '}';
    return std::move(text_);
  }

 private:
  std::string text_ = "{";
};

std::string prompt_json(const RecordedPrompt& prompt) {
  Line line;
  line.count("tokens", prompt.tokens);
  line.counts("blocks", prompt.blocks);
  if (!prompt.messages.empty()) line.counts("messages", prompt.messages);
  if (!prompt.content) return line.end();
  if (const auto* chat = std::get_if<runtime::ChatPrompt>(&*prompt.content)) {
    line.raw("chat", runtime::write_json(runtime::to_json_node(chat_json(*chat)), kCompact));
  } else if (const auto* text = std::get_if<std::string>(&*prompt.content)) {
    line.text("text", *text);
  } else {
    line.counts("ids", std::get<std::vector<runtime::TokenId>>(*prompt.content));
  }
  return line.end();
}

std::string choice_json(const RecordedChoice& choice) {
  Line line;
  line.count("prompt", choice.prompt);
  line.count("tokens", choice.tokens);
  line.text("finish", choice.finish);
  line.counts("blocks", choice.blocks);
  if (!choice.ids.empty()) line.counts("ids", choice.ids);
  return line.end();
}

}  // namespace

std::string record_line(const RecordHeader& header) {
  Line line;
  line.count("sluice_record", kRecordVersion);
  line.text("model", header.model);
  line.count("block_tokens", header.block_tokens);
  line.number("started_unix_s", header.started_unix_s);
  line.text("prompts", header.hashed ? "hashed" : "content");
  return line.end();
}

std::string record_line(const RequestRecord& record) {
  Line line;
  line.number("arrival_s", record.arrival_s);
  line.number("first_token_s", record.first_token_s);
  line.number("end_s", record.end_s);
  line.text("endpoint", record.endpoint);
  line.text("id", record.id);
  if (!record.session.empty()) line.text("session", record.session);
  line.count("cached_tokens", record.cached_tokens);
  line.raw("prompts", list_json(record.prompts, prompt_json));
  line.raw("choices", list_json(record.choices, choice_json));
  return line.end();
}

}  // namespace net
