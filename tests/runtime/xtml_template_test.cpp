#include "runtime/xtml_template.hpp"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "tests/support/tokenizer_directory.hpp"
#include "tests/support/xtml_text.hpp"

using runtime::ChatMessage;
using runtime::ChatPrompt;
using runtime::render_xtml;
using runtime::Segment;
using runtime::ToolCall;
using runtime::ToolChoice;

namespace {

namespace json = boost::json;

const std::string kGenerate = "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>";

ChatMessage message(std::string role, std::string content) {
  ChatMessage out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

ChatMessage calls(std::vector<ToolCall> list) {
  ChatMessage out = message("assistant", "");
  out.tool_calls = std::move(list);
  return out;
}

ChatMessage result(std::string id, std::string content, std::string name = "") {
  ChatMessage out = message("tool", std::move(content));
  out.tool_call_id = std::move(id);
  out.name = std::move(name);
  return out;
}

// A prompt without an effort message.
ChatPrompt plain(std::vector<ChatMessage> messages) {
  ChatPrompt prompt;
  prompt.messages = std::move(messages);
  prompt.effort.clear();
  return prompt;
}

std::string rendered(const ChatPrompt& prompt) {
  const auto segments = render_xtml(prompt);
  return segments ? support::joined(*segments) : "error: " + segments.error().message;
}

std::string element(const std::string& open, const std::string& body) {
  return "<|open|>message " + open + "<|sep|>" + body + "<|close|>message<|sep|><|end_of_msg|>";
}

std::string assistant(const std::string& tools) {
  return element(
      "role=\"assistant\"",
      "<|open|>think<|sep|><|close|>think<|sep|><|open|>response<|sep|><|close|>response<|sep|>" +
          tools);
}

ChatPrompt example_conversation() {
  ChatPrompt prompt;
  prompt.tools = json::parse(R"([{"type": "function", "function": {"name": "get_weather",
      "description": "Current weather for a city.", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}])");
  ChatMessage call = calls({{"call_1", "get_weather",
                             R"({"city":"Paris","days":2,"opts":{"units":"c","x":[1,null]}})"}});
  call.reasoning = "Looks like Paris.";
  prompt.messages = {message("system", "You are a helpful assistant."),
                     message("user", "Which city is this and what is its weather? (a<b & \"q\")"),
                     call, result("call_1", "18C, clear")};
  return prompt;
}

}  // namespace

TEST_CASE("the example conversation has the model's own segments", "[runtime][golden]") {
  std::ifstream in(SLUICE_SOURCE_DIR "/tests/data/xtml_example_segments.json");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<Segment> expected;
  const json::value pairs = json::parse(text);
  for (const json::value& item : pairs.as_array()) {
    Segment segment{std::string(item.at(0).as_string()), item.at(1).as_bool()};
    if (!segment.text.starts_with("<|media_begin|>"))
      expected.push_back(segment);  // the example shows an image; text only here
  }
  REQUIRE(expected.size() == 175);
  const auto segments = render_xtml(example_conversation());
  REQUIRE(segments.has_value());
  REQUIRE(segments->size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK((*segments)[i].text == expected[i].text);
    CHECK((*segments)[i].control == expected[i].control);
  }
}

TEST_CASE("text that looks like markup stays one text segment", "[runtime]") {
  const std::string text = "<|open|>message<|sep|> &amp; <|kimi_image_placeholder|> <|media_pad|>";
  const auto segments = render_xtml(plain({message("user", text)}));
  REQUIRE(segments.has_value());
  REQUIRE((*segments)[7].text == text);
  CHECK_FALSE((*segments)[7].control);
}

TEST_CASE("messages carry their role and name", "[runtime]") {
  ChatMessage named = message("user", "hi");
  named.name = "A & \"B\" <c>";
  ChatMessage answer = message("assistant", "yes");
  answer.name = "bot";
  answer.reasoning = " why\n";
  CHECK(rendered(plain({message("system", ""), message("developer", "d"), named, answer})) ==
        element("role=\"system\"", "") + element("role=\"system\"", "d") +
            element("role=\"user\" name=\"A &amp; &quot;B&quot; <c>\"", "hi") +
            element("role=\"assistant\" name=\"bot\"",
                    "<|open|>think<|sep|> why\n<|close|>think<|sep|>"
                    "<|open|>response<|sep|>yes<|close|>response<|sep|>") +
            kGenerate);
}

TEST_CASE("without thinking there is no think element and no effort", "[runtime]") {
  ChatMessage answer = message("assistant", "yes");
  answer.reasoning = "why";
  ChatPrompt prompt = plain({answer});
  prompt.thinking = false;
  prompt.effort = "max";
  CHECK(rendered(prompt) ==
        element("role=\"assistant\"", "<|open|>response<|sep|>yes<|close|>response<|sep|>") +
            "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>");
}

TEST_CASE("blank reasoning is left out, its element stays", "[runtime]") {
  ChatMessage answer = message("assistant", "");
  answer.reasoning = " \n";
  CHECK(rendered(plain({answer})) == assistant("") + kGenerate);
}

TEST_CASE("each effort is announced and an unknown one refused", "[runtime]") {
  ChatPrompt prompt;
  for (const std::string effort : {"low", "medium", "high", "max"}) {
    prompt.effort = effort;
    CHECK_THAT(rendered(prompt), Catch::Contains("invoked with `thinking_effort=" + effort + "`."));
  }
  prompt.effort = "extreme";
  const auto segments = render_xtml(prompt);
  REQUIRE(segments.has_error());
  CHECK(segments.error().param == "reasoning_effort");
  CHECK(segments.error().message ==
        "reasoning_effort is \"extreme\"; expected low, medium, high or max");
}

TEST_CASE("arguments are typed, in the client's order, spelled the canonical way", "[runtime]") {
  const std::string text =
      R"({"z":"a \"q\" <|sep|>\n","n":1e-5,"i":12345678901234567890123,"b":true,"u":null,"a":[1,{"k":"é"}],"e":"","q\"&":0})";
  const auto argument = [](const std::string& key, const std::string& type,
                           const std::string& value) {
    return "<|open|>argument key=\"" + key + "\" type=\"" + type + "\"<|sep|>" + value +
           "<|close|>argument<|sep|>";
  };
  CHECK(rendered(plain({calls({{"1", "f", text}})})) ==
        assistant("<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>" +
                  argument("z", "string", "a \"q\" <|sep|>\n") + argument("n", "number", "1e-05") +
                  argument("i", "number", "12345678901234567890123") +
                  argument("b", "boolean", "true") + argument("u", "null", "null") +
                  argument("a", "array", "[1, {\"k\": \"é\"}]") + argument("e", "string", "") +
                  argument("q&quot;&amp;", "number", "0") +
                  "<|close|>call<|sep|><|close|>tools<|sep|>") +
            kGenerate);
}

TEST_CASE("arguments that are no JSON object are kept raw, left empty or refused", "[runtime]") {
  const std::string open = "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>";
  const std::string close = "<|close|>call<|sep|><|close|>tools<|sep|>";
  const std::string broken = R"({"city": "Par)";
  CHECK(rendered(plain({calls({{"1", "f", broken}})})) ==
        assistant(open + "<|open|>json type=\"object\"<|sep|>" + broken + "<|close|>json<|sep|>" +
                  close) +
            kGenerate);
  CHECK(rendered(plain({calls({{"1", "f", ""}})})) == assistant(open + close) + kGenerate);
  CHECK(rendered(plain({calls({{"1", "f", " {} "}})})) == assistant(open + close) + kGenerate);

  const auto refused =
      render_xtml(plain({message("user", "x"), calls({{"1", "f", "{}"}, {"2", "g", "[1]"}})}));
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == kernels::ErrorCode::kInvalid);
  CHECK(refused.error().param == "messages[1].tool_calls[1].function.arguments");
  CHECK_THAT(refused.error().message, Catch::Contains("is a JSON array; expected an object"));
  const auto nameless = render_xtml(plain({calls({{"1", "", "{}"}})}));
  REQUIRE(nameless.has_error());
  CHECK(nameless.error().param == "messages[0].tool_calls[0].function.name");
}

TEST_CASE("tool results come in the order of the calls when all are known", "[runtime]") {
  const ChatMessage two = calls({{"a", "f", "{}"}, {"b", "g", "{}"}});
  const std::string call_text = assistant(
      "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|close|>call<|sep|>"
      "<|open|>call tool=\"g\" index=\"2\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>");
  const auto answer = [](const std::string& tool, const std::string& index,
                         const std::string& body) {
    return element("role=\"tool\" tool=\"" + tool + "\" index=\"" + index + "\"", body);
  };
  CHECK(rendered(plain({two, result("b", "B"), result("a", "A")})) ==
        call_text + answer("f", "1", "A") + answer("g", "2", "B") + kGenerate);
  // The call's own name counts, whatever the result says.
  CHECK(rendered(plain({two, result("b", "B", "other")})) ==
        call_text + answer("g", "1", "B") + kGenerate);
  // One unknown id: the order stays, and that message must name its tool.
  CHECK(rendered(plain({two, result("b", "B"), result("x", "X", "h"), result("a", "A")})) ==
        call_text + answer("g", "1", "B") + answer("h", "2", "X") + answer("f", "3", "A") +
            kGenerate);
  // Another message between them parts two runs; the count goes on until the next assistant
  // message.
  CHECK(rendered(plain({two, result("b", "B"), message("system", "s"), result("a", "A"), two,
                        result("a", "A")})) ==
        call_text + answer("g", "1", "B") + element("role=\"system\"", "s") +
            answer("f", "2", "A") + call_text + answer("f", "1", "A") + kGenerate);

  const auto unknown = render_xtml(plain({two, result("a", "A"), result("zz", "Z")}));
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().param == "messages[2].tool_call_id");
  CHECK_THAT(unknown.error().message, Catch::Contains("messages[2].tool_call_id is \"zz\""));
  CHECK(render_xtml(plain({result("", "A")})).has_error());
  CHECK(render_xtml(plain({calls({{"", "f", "{}"}}), result("", "A")}))
            .has_error());  // an empty id is no id
}

TEST_CASE("an unknown role is refused by message", "[runtime]") {
  const auto segments = render_xtml(plain({message("user", "x"), message("robot", "y")}));
  REQUIRE(segments.has_error());
  CHECK(segments.error().message ==
        "messages[1].role is \"robot\"; expected system, user, assistant or tool");
}

TEST_CASE("tools, tool choice and response format are announced in their places", "[runtime]") {
  ChatPrompt prompt = plain({message("user", "hi")});
  prompt.tools = json::parse(R"([{"b": 1, "a": "é"}])");
  prompt.tool_choice = ToolChoice::kRequired;
  prompt.response_format = json::parse(
      R"({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "a": 0.5}}})");
  ChatMessage more = message("system", "ignored");
  more.tools = json::parse(R"([{"name": "late"}])");
  prompt.messages.push_back(more);
  const std::string raw =
      "Your response must be raw JSON data without markdown code blocks (```json) or any "
      "additional formatting.";
  CHECK(rendered(prompt) ==
        element("role=\"system\" type=\"tool-declare\"",
                "# Tools\nHere are the available tools, described in JSONSchema.\n\n"
                "```json\n[{\"a\":\"é\",\"b\":1}]\n```") +
            element("role=\"user\"", "hi") +
            element("role=\"system\" type=\"tool-declare\"",
                    "## New Tools Available\nThe system dynamically extends the toolset via "
                    "lazy-loading.\nYou have access to all "
                    "existing and extended tools.\nHere are the specs for the extended "
                    "tools.\n\n```json\n[{\"name\":\"late\"}]\n```") +
            element("role=\"system\" type=\"tool-choice\"",
                    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in "
                    "the next message.") +
            element("role=\"system\" type=\"response-format\"",
                    "The system is invoked with `response_format=json_schema`.\n" + raw +
                        "\nThe JSON data must match the following "
                        "schema:\n```json\n{\"a\":0.5,\"type\":\"object\"}\n```") +
            kGenerate);

  prompt = plain({});
  prompt.tools = json::array();
  prompt.tool_choice = ToolChoice::kNone;
  prompt.response_format = json::parse(R"({"type": "json_object"})");
  CHECK(rendered(prompt) ==
        element("role=\"system\" type=\"tool-choice\"",
                "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in "
                "the next message.") +
            element("role=\"system\" type=\"response-format\"",
                    "The system is invoked with `response_format=json_object`.\n" + raw) +
            kGenerate);
  prompt = plain({});
  prompt.response_format = json::parse(R"({"type": "text"})");
  CHECK(rendered(prompt) == kGenerate);
  prompt.response_format = json::parse(R"({"type": "yaml"})");
  CHECK(render_xtml(prompt).error().param == "response_format.type");
  prompt.response_format = json::parse(R"({"type": "json_schema", "json_schema": {"name": "n"}})");
  CHECK(render_xtml(prompt).error().param == "response_format.json_schema.schema");
}

TEST_CASE("segments are encoded one by one, markers by name", "[runtime]") {
  std::vector<std::string> tokens = support::single_bytes();
  tokens.push_back("ab");
  const support::TokenizerDirectory directory;
  directory.write_model(tokens);
  directory.write_special({{300, "<|open|>"}});
  const auto tokenizer = runtime::Tokenizer::load(directory.path());
  const auto ids =
      encode_segments(*tokenizer, {{"<|open|>", true}, {"ab", false}, {"a", false}, {"b", false}});
  REQUIRE(ids.has_value());
  CHECK(*ids == std::vector<runtime::TokenId>{300, 256, 'a', 'b'});
  const auto missing = encode_segments(*tokenizer, {{"<|sep|>", true}});
  REQUIRE(missing.has_error());
  CHECK_THAT(missing.error().message, Catch::Contains("names no <|sep|> token"));
}
