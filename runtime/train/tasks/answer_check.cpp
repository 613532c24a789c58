#include "runtime/train/tasks/answer_check.hpp"

#include <cctype>
#include <optional>
#include <string>

#include "runtime/canonical_json.hpp"
#include "runtime/xtml_parser.hpp"

namespace runtime {

namespace {

ChatMessage parse_answer(const std::shared_ptr<const Tokenizer>& tokenizer, bool thinking,
                         std::span<const TokenId> ids) {
  XtmlParser parser(tokenizer, thinking);
  std::vector<ChatDelta> deltas;
  for (const TokenId id : ids) parser.push(id, deltas);
  parser.finish(deltas);
  ChatMessage message = assistant_message("", "");
  for (ChatDelta& delta : deltas) {
    if (delta.kind == ChatDelta::Kind::kReasoning) message.reasoning += delta.text;
    if (delta.kind == ChatDelta::Kind::kContent) message.content += delta.text;
    if (delta.kind == ChatDelta::Kind::kToolBegin)
      message.tool_calls.push_back({{}, delta.tool_name, {}});
    if (delta.kind == ChatDelta::Kind::kToolArguments)
      message.tool_calls.back().arguments += delta.text;
  }
  return message;
}

std::string text_of(const std::vector<LearntSegment>& segments) {
  std::string out;
  for (const LearntSegment& segment : segments) out += segment.segment.text;
  return out;
}

// Sorted keys, so that the order of arguments does not count. Empty: not JSON.
std::string canonical(const std::string& arguments) {
  const auto node = parse_json_node(arguments.empty() ? "{}" : arguments);
  return node ? write_json(*node, kCompactSortedJson) : std::string();
}

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool contains_words(const std::string& text, const std::string& words) {
  if (words.empty()) return true;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
    const size_t end = at + words.size();
    const bool begins = at == 0 || !is_word_character(text[at - 1]) || !is_word_character(words[0]);
    const bool ends =
        end == text.size() || !is_word_character(text[end]) || !is_word_character(words.back());
    if (begins && ends) return true;
  }
  return false;
}

bool meets(const Expectation& expected, const ChatMessage& answer) {
  if (answer.tool_calls.size() != expected.calls.size()) return false;
  for (size_t i = 0; i < expected.calls.size(); ++i) {
    const ToolCall &wanted = expected.calls[i], &given = answer.tool_calls[i];
    if (given.name != wanted.name || canonical(given.arguments) != canonical(wanted.arguments))
      return false;
  }
  return contains_words(answer.content, expected.contains);
}

}  // namespace

AnswerMarks check_answer(const std::shared_ptr<const Tokenizer>& tokenizer, const Example& example,
                         std::span<const TokenId> ids) {
  Example given = example;
  given.prompt = {};
  given.prompt.thinking = example.prompt.thinking;
  given.prompt.effort.clear();
  std::string produced;
  for (const Segment& segment : *render_xtml(given.prompt)) produced += segment.text;
  for (const TokenId id : ids) produced += tokenizer->bytes(id);
  given.answer = parse_answer(tokenizer, example.prompt.thinking, ids);
  AnswerMarks marks;
  for (const ToolCall& call : given.answer.tool_calls) {
    if (call.name.empty() || canonical(call.arguments).empty()) return marks;
  }
  marks.is_well_formed = text_of(render_example(given)) == produced;
  marks.is_right = marks.is_well_formed && meets(example.expected, given.answer);
  return marks;
}

}  // namespace runtime
