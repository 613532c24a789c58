#include "runtime/xtml_parser.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "runtime/canonical_json.hpp"
#include "runtime/xtml_template.hpp"
#include "tests/support/tokenizer_directory.hpp"
#include "tests/support/xtml_text.hpp"

using runtime::ChatDelta;
using runtime::ChatMessage;
using runtime::TokenId;
using runtime::XtmlParser;

namespace {

// An answer put together from its deltas, as a client does.
struct Answer {
  std::string reasoning, content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments

  void add(const std::vector<ChatDelta>& deltas) {
    for (const ChatDelta& delta : deltas) {
      CHECK(runtime::to_valid_utf8(delta.text) == delta.text);
      switch (delta.kind) {
        case ChatDelta::Kind::kReasoning:
          reasoning += delta.text;
          break;
        case ChatDelta::Kind::kContent:
          content += delta.text;
          break;
        case ChatDelta::Kind::kToolBegin:
          REQUIRE(delta.tool_index == calls.size());
          calls.emplace_back(delta.tool_name, "");
          break;
        case ChatDelta::Kind::kToolArguments:
          REQUIRE(delta.tool_index + 1 == calls.size());  // only the latest call grows
          calls.back().second += delta.text;
      }
    }
  }
};

Answer parse(const std::shared_ptr<const runtime::Tokenizer>& tokenizer,
             const std::vector<TokenId>& ids, bool thinking) {
  XtmlParser parser(tokenizer, thinking);
  Answer answer;
  for (const TokenId id : ids) {
    std::vector<ChatDelta> deltas;
    parser.push(id, deltas);
    answer.add(deltas);
  }
  std::vector<ChatDelta> deltas;
  parser.finish(deltas);
  answer.add(deltas);
  CHECK(parser.saw_tool_call() == !answer.calls.empty());
  return answer;
}

Answer parse(const std::string& xtml, bool thinking = true) {
  const auto tokenizer = support::byte_tokenizer();
  return parse(tokenizer, support::xtml_ids(*tokenizer, xtml), thinking);
}

// A call with one argument element per entry {attributes, value}.
std::string call(const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string out = "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>";
  for (const auto& [attributes, value] : arguments) {
    out += "<|open|>argument " + attributes + "<|sep|>" + value + "<|close|>argument<|sep|>";
  }
  return out + "<|close|>call<|sep|><|close|>tools<|sep|>";
}

std::string random_text(std::mt19937& rng, size_t pieces) {
  const std::vector<std::string> alphabet{"word ", "\"", "\\",  "\n", "&amp;", "<|open|>", "é",
                                          "😀",     "{",  "=\"", "\t", "\x01",  "7"};
  std::string out;
  for (size_t k = rng() % (pieces + 1); k > 0; --k) out += alphabet[rng() % alphabet.size()];
  return out;
}

std::string random_json(std::mt19937& rng, int depth) {
  switch (rng() % (depth > 0 ? 7u : 5u)) {
    case 0:
      return "null";
    case 1:
      return rng() % 2 == 0 ? "true" : "false";
    case 2:
      return std::to_string(static_cast<int32_t>(rng()));
    case 3:
      return runtime::json_number(static_cast<double>(rng()) / 1024);
    case 4:
      return runtime::json_quoted(random_text(rng, 6));
    default:
      break;
  }
  const bool is_object = rng() % 2 == 0;
  std::string out;
  for (size_t k = rng() % 4; k > 0; --k) {
    if (!out.empty()) out += ",";
    if (is_object)
      out += runtime::json_quoted(std::string("k") + std::to_string(k) + random_text(rng, 2)) + ":";
    out += random_json(rng, depth - 1);
  }
  return (is_object ? "{" : "[") + out + (is_object ? "}" : "]");
}

std::string random_object(std::mt19937& rng) {
  std::string out;
  for (size_t k = rng() % 4; k > 0; --k) {
    if (!out.empty()) out += ", ";
    out += runtime::json_quoted(std::string("k") + std::to_string(k) + random_text(rng, 3)) + ": " +
           random_json(rng, 2);
  }
  return "{" + out + "}";
}

bool is_json_object(const std::string& text) {
  const auto node = runtime::parse_json_node(text);
  return node && node->kind == runtime::JsonNode::Kind::kObject;
}

}  // namespace

TEST_CASE("an answer is split into reasoning, content and tool calls", "[runtime]") {
  const Answer answer = parse(
      "Let me "
      "see.<|close|>think<|sep|><|open|>response<|sep|>Here.<|close|>response<|sep|><|open|>tools<|"
      "sep|>"
      "<|open|>call tool=\"get_weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
      "type=\"string\"<|sep|>Par\"is\n"
      "<|close|>argument<|sep|><|open|>argument key=\"days\" "
      "type=\"number\"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>"
      "<|open|>call tool=\"a &amp; &quot;b&quot;\" "
      "index=\"2\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
      "<|close|>message<|sep|><|end_of_msg|>");
  CHECK(answer.reasoning == "Let me see.");
  CHECK(answer.content == "Here.");
  REQUIRE(answer.calls.size() == 2);
  CHECK(answer.calls[0].first == "get_weather");
  CHECK(answer.calls[0].second == R"({"city": "Par\"is\n", "days": 2})");
  CHECK(answer.calls[1].first == "a & \"b\"");
  CHECK(answer.calls[1].second == "{}");
}

TEST_CASE("without thinking an answer begins with content", "[runtime]") {
  const Answer answer = parse("Yes.<|close|>response<|sep|><|close|>message<|sep|>", false);
  CHECK(answer.content == "Yes.");
  CHECK(answer.reasoning.empty());
}

TEST_CASE("a message that strays from the grammar keeps its text", "[runtime]") {
  struct Example {
    std::string xtml, reasoning, content;
  };
  const auto example = GENERATE(values<Example>({
      {"why<|open|>response<|sep|>yes", "why", "yes"},  // no close(think)
      {"why<|close|>think<|sep|>yes", "why", "yes"},    // no open(response)
      {"why<|close|>think<|sep|><|open|>response<|sep|>a<|close|>response<|sep|>b", "why", "ab"},
      {"why<|close|>response<|sep|> more", "why more", ""},  // closes what is not open
      {"a<|open|>b<|sep|>c<|close|>b<|sep|>d", "acd", ""},   // unknown tag
      {"a<|sep|>b[BOS]c", "abc", ""},                        // markers alone
      {"a<|open|>b<|open|>response<|sep|>c", "ab", "c"},     // a marker without its tag
      {"a<|close|>thi", "a", ""},                            // cut off inside a tag
      {"a<|open|>think<|sep|>b<|close|>think<|sep|>c<|open|>think<|sep|>d", "abd", "c"},
      {"a<|open|>argument key=\"k\"<|sep|>b<|close|>argument<|sep|>c<|close|>call<|sep|>d", "abcd",
       ""},                                                                   // no call is open
      {"a<|open|>call index=\"1\"<|sep|>b<|close|>call<|sep|>c", "abc", ""},  // a call of nothing
      {"a<|close|>message<|sep|><|end_of_msg|>b", "a", "b"},
      {"a<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>b", "ab", ""},
      {"a\xe6\xbc<|close|>think<|sep|>\xa2", "a\ufffd", "\ufffd"},  // no character across elements
      {"a\xe6\xbc", "a\ufffd", ""},
      {"a\xe6[BOS]\xbc\xa2", "a\u6f22", ""},
      {"<|open|>" + std::string(5000, 'x'), std::string(5000, 'x'), ""},  // too long for a tag
      {"<|open|>tools<|sep|>\n stray text \n<|close|>tools<|sep|>", "", "stray text \n"},
  }));
  CAPTURE(example.xtml);
  const Answer answer = parse(example.xtml);
  CHECK(answer.reasoning == example.reasoning);
  CHECK(answer.content == example.content);
  CHECK(answer.calls.empty());
}

TEST_CASE("arguments become JSON by their type", "[runtime]") {
  struct Example {
    std::vector<std::pair<std::string, std::string>> arguments;
    std::string json;
  };
  const auto example = GENERATE(values<Example>({
      {{{R"(key="a" type="string")", ""}}, R"({"a": ""})"},
      {{{R"(key="a" type="string")", "12"}}, R"({"a": "12"})"},
      {{{R"(key="a" type="number")", "12"}}, R"({"a": 12})"},
      {{{R"(key="a" type="number")", "twelve \"12\""}}, R"({"a": "twelve \"12\""})"},
      {{{R"(key="a" type="object")", R"({"x":[1, 2]})"}},
       R"({"a": {"x":[1, 2]}})"},  // as the model spelled it
      {{{R"(key="a" type="object")", R"({"x":)"}}, R"({"a": "{\"x\":"})"},
      {{{R"(key="a" type="null")", "null"}, {R"(key="b" type="boolean")", "true"}},
       R"({"a": null, "b": true})"},
      {{{R"(key="a")", "text"}, {R"(key="b")", "1"}}, R"({"a": "text", "b": 1})"},
      {{{R"(key="&quot;&amp;\" type="string")", "v"}}, R"({"\"&\\": "v"})"},
      {{{R"(type="string")", "v"}}, R"({"": "v"})"},
      {{{R"(key="a" type="string")", "\xe6\xbc"}}, "{\"a\": \"\ufffd\"}"},
  }));
  const Answer answer = parse(call(example.arguments));
  REQUIRE(answer.calls.size() == 1);
  CHECK(answer.calls[0].second == example.json);
}

TEST_CASE("a json element gives the arguments as a whole", "[runtime]") {
  const auto arguments = [](const std::string& inner) {
    const Answer answer = parse("<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|>" + inner);
    REQUIRE(answer.calls.size() == 1);
    return answer.calls[0].second;
  };
  const auto element = [](const std::string& text) {
    return "<|open|>json type=\"object\"<|sep|>" + text + "<|close|>json<|sep|>";
  };
  CHECK(arguments(element(R"({"a":1, "b":[]})")) == R"({"a":1, "b":[]})");
  CHECK(arguments(element(" {} ")) == "{}");
  CHECK(arguments(element("")) == "{}");
  CHECK(arguments(element("[1]")) == R"({"json": [1]})");
  CHECK(arguments(element(R"({"a": )")) == R"({"json": "{\"a\": "})");
  CHECK(arguments(element(R"({"a": 1})") + element(R"({"b": 2})")) == R"({"a": 1, "b": 2})");
}

TEST_CASE("a call that ends in the middle still has a JSON object", "[runtime]") {
  const std::string whole =
      call({{R"(key="a" type="string")", "x\"y"}, {R"(key="b" type="array")", "[1, 2]"}});
  const auto tokenizer = support::byte_tokenizer();
  const auto ids = support::xtml_ids(*tokenizer, whole);
  for (size_t cut = 0; cut <= ids.size(); ++cut) {
    CAPTURE(cut);
    const Answer answer =
        parse(tokenizer, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut)}, true);
    for (const auto& [name, arguments] : answer.calls) CHECK(is_json_object(arguments));
    CHECK((answer.reasoning + answer.content).empty());
  }
}

TEST_CASE("string arguments stream before they end", "[runtime]") {
  const auto tokenizer = support::byte_tokenizer();
  XtmlParser parser(tokenizer, true);
  std::vector<ChatDelta> deltas;
  const std::string begin =
      "<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|><|open|>argument key=\"a\" "
      "type=\"string\"<|sep|>x";
  for (const TokenId id : support::xtml_ids(*tokenizer, begin)) parser.push(id, deltas);
  REQUIRE(deltas.size() == 3);
  CHECK(deltas[0].kind == ChatDelta::Kind::kToolBegin);
  CHECK(deltas[1].text == "{\"a\": \"");
  CHECK(deltas[2].text == "x");
}

TEST_CASE("a rendered assistant message parses back into itself", "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 150u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto tokenizer = support::byte_tokenizer();
  ChatMessage user, assistant;
  user.role = "user";
  assistant.role = "assistant";
  assistant.content = random_text(rng, 12);
  const bool thinking = rng() % 4 != 0;
  if (thinking && rng() % 4 != 0) assistant.reasoning = std::string("r") + random_text(rng, 12);
  for (size_t k = rng() % 3; k > 0; --k) {
    assistant.tool_calls.push_back({std::string("id") + std::to_string(k),
                                    std::string("f") + random_text(rng, 3), random_object(rng)});
  }
  const auto ids = [&](std::vector<ChatMessage> messages) {
    runtime::ChatPrompt prompt;
    prompt.messages = std::move(messages);
    prompt.thinking = thinking;
    return encode_segments(*tokenizer, render_xtml(prompt).value()).value();
  };
  // The answer's ids: what a prompt with it has between the generation prompt of the one without
  // it, and its own.
  const auto before = ids({user}), after = ids({user, assistant});
  const auto generation_prompt = support::xtml_ids(
      *tokenizer, std::string("<|open|>message role=\"assistant\"<|sep|><|open|>") +
                      (thinking ? "think" : "response") + "<|sep|>");
  const std::vector<TokenId> answer_ids(
      after.begin() + static_cast<std::ptrdiff_t>(before.size()),
      after.end() - static_cast<std::ptrdiff_t>(generation_prompt.size()));
  const Answer answer = parse(tokenizer, answer_ids, thinking);
  CHECK(answer.reasoning == assistant.reasoning);
  CHECK(answer.content == assistant.content);
  REQUIRE(answer.calls.size() == assistant.tool_calls.size());
  for (size_t i = 0; i < answer.calls.size(); ++i) {
    CHECK(answer.calls[i].first == assistant.tool_calls[i].name);
    CHECK(answer.calls[i].second ==
          write_json(*runtime::parse_json_node(assistant.tool_calls[i].arguments),
                     runtime::kSpacedJson));
  }
}

TEST_CASE("any stream of ids gives valid text and arguments that are JSON objects",
          "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto tokenizer = support::byte_tokenizer();
  const std::vector<std::string> snippets{"<|open|>",
                                          "<|close|>",
                                          "<|sep|>",
                                          "<|end_of_msg|>",
                                          "[BOS]",
                                          "think",
                                          "response",
                                          "tools",
                                          "call",
                                          "call tool=\"f\"",
                                          "json",
                                          "argument key=\"a\" type=\"string\"",
                                          "argument key=\"b\" type=\"number\"",
                                          "argument",
                                          "message",
                                          "{\"x\": 1}",
                                          "12",
                                          "\"",
                                          "\\",
                                          "text ",
                                          "=\"",
                                          "\n",
                                          "\xe6\xbc",
                                          "\xa2",
                                          "é"};
  const std::vector<std::string> tags{"<|open|>think<|sep|>",
                                      "<|open|>tools<|sep|>",
                                      "<|open|>call tool=\"f\" index=\"1\"<|sep|>",
                                      "<|open|>argument key=\"a\" type=\"string\"<|sep|>",
                                      "<|open|>argument key=\"b\"<|sep|>",
                                      "<|open|>json<|sep|>",
                                      "<|close|>call<|sep|>",
                                      "<|close|>argument<|sep|>"};
  std::vector<TokenId> ids;
  for (size_t k = rng() % 120; k > 0; --k) {
    const uint32_t kind = static_cast<uint32_t>(rng() % 8);
    if (kind == 0) {
      ids.push_back(static_cast<TokenId>(rng() % 600) - 20);  // unknown ids too
      continue;
    }
    const auto& source = kind < 4 ? tags : snippets;
    const auto more = support::xtml_ids(*tokenizer, source[rng() % source.size()]);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  const Answer answer = parse(tokenizer, ids, rng() % 2 == 0);
  for (const std::string& text : {answer.reasoning, answer.content}) {
    CHECK(text.find("<|") == std::string::npos);
    CHECK(text.find("|>") == std::string::npos);
  }
  for (const auto& [name, arguments] : answer.calls) {
    CAPTURE(arguments);
    CHECK(is_json_object(arguments));
    CHECK_FALSE(name.empty());
  }
}

TEST_CASE("a tokenizer without markers gives plain text", "[runtime]") {
  const support::TokenizerDirectory directory;
  directory.write_model(support::single_bytes());
  directory.write_special({{256, "[BOS]"}});
  const auto tokenizer = runtime::Tokenizer::load(directory.path());
  const Answer answer = parse(tokenizer, {'a', 256, 'b'}, false);
  CHECK(answer.content == "ab");
}
