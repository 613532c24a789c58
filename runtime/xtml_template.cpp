#include "runtime/xtml_template.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "runtime/canonical_json.hpp"
#include "runtime/xtml_segments.hpp"

namespace runtime {

namespace json = boost::json;
using kernels::Error;
using kernels::invalid;

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\f\v";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

std::string fenced(const json::value& value) {
  return "```json\n" + write_json(to_json_node(value), kCompactSortedJson) + "\n```";
}

bool has_tools(const json::value& tools) { return tools.is_array() && !tools.get_array().empty(); }

std::string field(size_t message, std::string_view name) {
  return "messages[" + std::to_string(message) + "]." + std::string(name);
}

// One rendering. Errors are returned as soon as they are met; the segments are then thrown away.
class Renderer {
 public:
  explicit Renderer(const ChatPrompt& prompt) : prompt_(prompt) {}
  kernels::Result<std::vector<Segment>> render();

 private:
  using Failure = std::optional<Error>;

  void render_internal(std::string_view type, std::string_view body);
  Failure render_effort();
  Failure render_conversation();
  void render_plain(const ChatMessage& message, std::string_view role);
  Failure render_assistant(size_t index);
  Failure render_call(size_t message, size_t call);
  Failure render_arguments(const std::string& arguments, const std::string& name);
  Failure render_tool_results(size_t begin, size_t end);
  void render_tool_choice();
  Failure render_response_format();
  void render_generation_prompt();

  const ChatPrompt& prompt_;
  XtmlSegments out_;
  const ChatMessage* last_assistant_ = nullptr;
  uint32_t tool_results_ = 0;  // since the last assistant message
};

kernels::Result<std::vector<Segment>> Renderer::render() {
  if (has_tools(prompt_.tools)) {
    render_internal("tool-declare",
                    "# Tools\nHere are the available tools, described in JSONSchema.\n\n" +
                        fenced(prompt_.tools));
  }
  if (auto error = render_effort()) return *error;
  if (auto error = render_conversation()) return *error;
  render_tool_choice();
  if (auto error = render_response_format()) return *error;
  render_generation_prompt();
  return out_.take();
}

// A system message of the server's own making.
void Renderer::render_internal(std::string_view type, std::string_view body) {
  out_.open("message", {{"role", "system"}, {"type", type}});
  out_.text(body);
  out_.end_message();
}

Renderer::Failure Renderer::render_effort() {
  if (!prompt_.thinking || prompt_.effort.empty()) return std::nullopt;
  if (std::find(kEfforts.begin(), kEfforts.end(), prompt_.effort) == kEfforts.end()) {
    return invalid(
        "reasoning_effort is \"" + prompt_.effort + "\"; expected low, medium, high or max",
        "reasoning_effort");
  }
  render_internal("thinking-effort",
                  "`thinking_effort` guides on how much to think in your thinking channel (not "
                  "including the response "
                  "channel), supported values include `low`, `medium`, `high`, and `max`.\n"
                  "Now the system is invoked with `thinking_effort=" +
                      prompt_.effort + "`.");
  return std::nullopt;
}

Renderer::Failure Renderer::render_conversation() {
  const auto& messages = prompt_.messages;
  for (size_t i = 0; i < messages.size();) {
    const ChatMessage& message = messages[i];
    Failure error;
    size_t next = i + 1;
    if (message.role == "system" && has_tools(message.tools)) {
      render_internal(
          "tool-declare",
          "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
          "You have access to all existing and extended tools.\n"
          "Here are the specs for the extended tools.\n\n" +
              fenced(message.tools));
    } else if (message.role == "system" || message.role == "developer") {
      render_plain(message, "system");
    } else if (message.role == "user") {
      render_plain(message, "user");
    } else if (message.role == "assistant") {
      error = render_assistant(i);
    } else if (message.role == "tool") {
      while (next < messages.size() && messages[next].role == "tool") ++next;
      error = render_tool_results(i, next);
    } else {
      error = invalid(field(i, "role") + " is \"" + message.role +
                          "\"; expected system, user, assistant or tool",
                      field(i, "role"));
    }
    if (error) return error;
    i = next;
  }
  return std::nullopt;
}

void Renderer::render_plain(const ChatMessage& message, std::string_view role) {
  std::vector<XtmlAttribute> attributes{{"role", role}};
  if (!message.name.empty()) attributes.push_back({"name", message.name});
  out_.open("message", attributes);
  out_.text(message.content);
  out_.end_message();
}

Renderer::Failure Renderer::render_assistant(size_t index) {
  const ChatMessage& message = prompt_.messages[index];
  last_assistant_ = &message;
  tool_results_ = 0;
  std::vector<XtmlAttribute> attributes{{"role", "assistant"}};
  if (!message.name.empty()) attributes.push_back({"name", message.name});
  out_.open("message", attributes);
  if (prompt_.thinking) {
    out_.open("think");
    if (!is_blank(message.reasoning)) out_.text(message.reasoning);
    out_.close("think");
  }
  out_.open("response");
  out_.text(message.content);
  out_.close("response");
  if (!message.tool_calls.empty()) {
    out_.open("tools");
    for (size_t call = 0; call < message.tool_calls.size(); ++call) {
      if (auto error = render_call(index, call)) return error;
    }
    out_.close("tools");
  }
  out_.end_message();
  return std::nullopt;
}

Renderer::Failure Renderer::render_call(size_t message, size_t call) {
  const ToolCall& tool_call = prompt_.messages[message].tool_calls[call];
  const std::string place = field(message, "tool_calls[" + std::to_string(call) + "].function.");
  if (tool_call.name.empty())
    return invalid(place + "name is empty; expected the tool's name", place + "name");
  const std::string number = std::to_string(call + 1);
  out_.open("call", {{"tool", tool_call.name}, {"index", number}});
  if (auto error = render_arguments(tool_call.arguments, place + "arguments")) return error;
  out_.close("call");
  return std::nullopt;
}

// No text at all means no arguments: clients send "" for a tool without parameters.
Renderer::Failure Renderer::render_arguments(const std::string& arguments,
                                             const std::string& name) {
  if (is_blank(arguments)) return std::nullopt;
  const std::optional<JsonNode> object = parse_json_node(arguments);
  if (!object) {
    out_.open("json", {{"type", "object"}});
    out_.text(arguments);
    out_.close("json");
    return std::nullopt;
  }
  if (object->kind != JsonNode::Kind::kObject) {
    return invalid(name + " is a JSON " + std::string(json_type_name(object->kind)) +
                       "; expected an object as JSON text",
                   name);
  }
  for (const auto& [key, value] : object->members) {
    out_.open("argument", {{"key", key}, {"type", json_type_name(value.kind)}});
    out_.text(value.kind == JsonNode::Kind::kString ? value.text : write_json(value, kSpacedJson));
    out_.close("argument");
  }
  return std::nullopt;
}

// A run of tool messages. When each answers a call of the last assistant message they are put into
// the order of the calls.
Renderer::Failure Renderer::render_tool_results(size_t begin, size_t end) {
  std::unordered_map<std::string_view, size_t>
      calls;  // id -> place in the assistant's list, the first of equal ids
  if (last_assistant_ != nullptr) {
    for (size_t i = 0; i < last_assistant_->tool_calls.size(); ++i)
      calls.emplace(last_assistant_->tool_calls[i].id, i);
  }
  struct Result {
    size_t message = 0;
    std::optional<size_t> call;
  };
  std::vector<Result> results;
  for (size_t i = begin; i < end; ++i) {
    const auto found = calls.find(prompt_.messages[i].tool_call_id);
    const bool answers = found != calls.end() && !found->first.empty();
    results.push_back({i, answers ? std::optional(found->second) : std::nullopt});
  }
  if (std::all_of(results.begin(), results.end(),
                  [](const Result& result) { return result.call.has_value(); })) {
    std::stable_sort(results.begin(), results.end(),
                     [](const Result& a, const Result& b) { return *a.call < *b.call; });
  }
  for (const Result& result : results) {
    const ChatMessage& message = prompt_.messages[result.message];
    const std::string& tool =
        result.call ? last_assistant_->tool_calls[*result.call].name : message.name;
    if (tool.empty()) {
      return invalid(field(result.message, "tool_call_id") + " is \"" + message.tool_call_id +
                         "\", the id of no call of the assistant message before it, and the "
                         "message has no name; "
                         "expected such an id, or the tool's name",
                     field(result.message, "tool_call_id"));
    }
    const std::string number = std::to_string(++tool_results_);
    out_.open("message", {{"role", "tool"}, {"tool", tool}, {"index", number}});
    out_.text(message.content);
    out_.end_message();
  }
  return std::nullopt;
}

void Renderer::render_tool_choice() {
  if (prompt_.tool_choice == ToolChoice::kRequired) {
    render_internal("tool-choice",
                    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in "
                    "the next message.");
  } else if (prompt_.tool_choice == ToolChoice::kNone) {
    render_internal("tool-choice",
                    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools "
                    "in the next message.");
  }
}

Renderer::Failure Renderer::render_response_format() {
  if (prompt_.response_format.is_null()) return std::nullopt;
  const json::object* format = prompt_.response_format.if_object();
  const json::value* type = format != nullptr ? format->if_contains("type") : nullptr;
  const std::string name(type != nullptr && type->is_string() ? std::string_view(type->get_string())
                                                              : std::string_view());
  if (name == "text") return std::nullopt;
  if (name != "json_object" && name != "json_schema") {
    return invalid("response_format.type is not known; expected text, json_object or json_schema",
                   "response_format.type");
  }
  std::string body = "The system is invoked with `response_format=" + name +
                     "`.\nYour response must be raw JSON data without markdown code blocks "
                     "(```json) or any additional formatting.";
  if (name == "json_schema") {
    const json::value* outer = format->if_contains("json_schema");
    const json::value* schema = outer != nullptr && outer->is_object()
                                    ? outer->get_object().if_contains("schema")
                                    : nullptr;
    if (schema == nullptr || !schema->is_object()) {
      return invalid(
          "response_format.json_schema.schema is missing or no object; expected a JSON schema",
          "response_format.json_schema.schema");
    }
    body += "\nThe JSON data must match the following schema:\n" + fenced(*schema);
  }
  render_internal("response-format", body);
  return std::nullopt;
}

void Renderer::render_generation_prompt() {
  out_.open("message", {{"role", "assistant"}});
  out_.open(prompt_.thinking ? "think" : "response");
}

}  // namespace

kernels::Result<std::vector<Segment>> render_xtml(const ChatPrompt& prompt) {
  return Renderer(prompt).render();
}

kernels::Result<std::vector<Segment>> render_answer(const ChatMessage& answer, bool thinking) {
  ChatPrompt alone;
  alone.thinking = thinking;
  alone.effort.clear();
  auto opened = render_xtml(alone);  // the opening tags, which end every prompt
  if (!opened) return opened;
  alone.messages = {answer};
  alone.messages[0].name.clear();  // would stand in the opening tag
  auto segments = render_xtml(alone);
  if (!segments) return segments;
  const auto asked = static_cast<std::ptrdiff_t>(opened->size());
  segments->erase(segments->end() - asked, segments->end());
  segments->erase(segments->begin(), segments->begin() + asked);
  return segments;
}

kernels::Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                                      const std::vector<Segment>& segments,
                                                      const KeepGoing& keep_going) {
  std::vector<TokenId> ids;
  for (const Segment& segment : segments) {
    if (!segment.control) {
      tokenizer.encode_text(segment.text, ids, keep_going);
      continue;
    }
    const auto id = tokenizer.special(segment.text);
    if (!id) {
      return invalid("the model's tokenizer_config.json names no " + segment.text +
                         " token, so it cannot chat; /v1/completions still works",
                     "messages");
    }
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace runtime
