// The conversation of a chat request.
#include "net/openai_request.hpp"

namespace net {
namespace json = boost::json;

namespace {

std::string text_of(const json::string& text) { return std::string(text.data(), text.size()); }

// One part of a content array. Only text is understood so far.
std::string read_part(const json::value& value, Fields& owner, const std::string& name) {
  if (!value.is_object()) {
    owner.expected(name, "an object", value);
    return {};
  }
  Fields part = owner.inside(name, value.get_object());
  const std::string type = part.string("type").value_or("");
  if (type == "image_url" || type == "input_image" || type == "image") {
    owner.fail(name, "is an image; images are not supported yet");
    return {};
  }
  const std::string_view key = type == "refusal" ? "refusal" : "text";
  if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal") {
    if (part.find("type") == nullptr)
      part.fail("type", "is required");
    else
      part.expected("type", "one of text, refusal", *part.find("type"));
    return {};
  }
  if (part.find(key) == nullptr) part.fail(key, "is required");
  return part.string(key).value_or("");
}

std::string read_content(Fields& message, bool required) {
  const json::value* content = message.find("content");
  if (content == nullptr) {
    if (required) message.fail("content", "is required");
    return {};
  }
  if (content->is_string()) return text_of(content->get_string());
  if (!content->is_array()) {
    message.expected("content", "a string or an array of parts", *content);
    return {};
  }
  std::string text;
  const json::array& parts = content->get_array();
  for (size_t i = 0; i < parts.size() && message.ok(); ++i)
    text += read_part(parts[i], message, element("content", i));
  return text;
}

runtime::ToolCall read_tool_call(const json::value& value, Fields& message,
                                 const std::string& name) {
  runtime::ToolCall call;
  if (!value.is_object()) {
    message.expected(name, "an object", value);
    return call;
  }
  Fields fields = message.inside(name, value.get_object());
  call.id = fields.string("id").value_or("");
  fields.word("type", {"function"});
  const json::object* function = fields.object("function");
  if (function == nullptr) {
    fields.fail("function", "is required");
    return call;
  }
  Fields inner = fields.inside("function", *function);
  call.name = inner.string("name").value_or("");
  if (call.name.empty()) inner.fail("name", "must be a non-empty string");
  call.arguments = inner.string("arguments").value_or("");
  if (call.arguments.find_first_not_of(" \t\r\n") == std::string::npos)
    call.arguments = "{}";  // how some clients say "none"
  return call;
}

void read_assistant(Fields& fields, runtime::ChatMessage& message) {
  message.content = read_content(fields, false);
  if (message.content.empty()) message.content = fields.string("refusal").value_or("");
  message.reasoning = fields.string("reasoning_content").value_or("");
  if (message.reasoning.empty()) message.reasoning = fields.string("reasoning").value_or("");
  const json::array* calls = fields.array("tool_calls");
  if (calls == nullptr) return;
  for (size_t i = 0; i < calls->size() && fields.ok(); ++i)
    message.tool_calls.push_back(read_tool_call((*calls)[i], fields, element("tool_calls", i)));
}

runtime::ChatMessage read_message(Fields fields) {
  runtime::ChatMessage message;
  if (fields.find("role") == nullptr) fields.fail("role", "is required");
  message.role =
      fields.word("role", {"system", "developer", "user", "assistant", "tool"}).value_or("");
  if (!fields.ok()) return message;
  if (message.role == "developer") message.role = "system";
  message.name = fields.string("name").value_or("");
  if (message.role == "assistant") {
    read_assistant(fields, message);
    return message;
  }
  if (message.role == "system") message.tools = read_tools(fields);
  message.content = read_content(fields, message.tools.is_null());
  if (message.role != "tool") return message;
  if (fields.find("tool_call_id") == nullptr)
    fields.fail("tool_call_id", "is required in a message of role tool");
  message.tool_call_id = fields.string("tool_call_id").value_or("");
  return message;
}

}  // namespace

std::vector<runtime::ChatMessage> read_messages(Fields& fields) {
  std::vector<runtime::ChatMessage> messages;
  const json::value* list = fields.find("messages");
  if (list == nullptr)
    fields.fail("messages", "is required");
  else if (!list->is_array() || list->get_array().empty())
    fields.expected("messages", "a non-empty array", *list);
  if (!fields.ok()) return messages;
  const json::array& array = list->get_array();
  for (size_t i = 0; i < array.size() && fields.ok(); ++i) {
    const std::string name = element("messages", i);
    if (const json::object* object = array[i].if_object())
      messages.push_back(read_message(fields.inside(name, *object)));
    else
      fields.expected(name, "an object", array[i]);
  }
  return messages;
}

runtime::ChatPrompt read_chat_prompt(Fields& fields, const actors::ServiceInfo& info) {
  runtime::ChatPrompt prompt;
  prompt.messages = read_messages(fields);
  prompt.tools = read_tools(fields);
  for (const std::string_view old : {"functions", "function_call"})
    if (fields.find(old) != nullptr)
      fields.fail(old, "is not supported; use tools and tool_choice");
  read_tool_choice(fields, prompt);
  if (const json::object* format = fields.object("response_format")) {
    Fields inner = fields.inside("response_format", *format);
    if (inner.find("type") == nullptr) inner.fail("type", "is required");
    const std::string type =
        inner.word("type", {"text", "json_object", "json_schema"}).value_or("");
    const json::object* schema = type == "json_schema" ? inner.object("json_schema") : nullptr;
    if (type == "json_schema" && schema == nullptr) inner.fail("json_schema", "is required");
    if (schema != nullptr) {
      Fields named = inner.inside("json_schema", *schema);
      if (named.object("schema") == nullptr) named.fail("schema", "is required");
    }
    if (type != "text") prompt.response_format = *format;
  }
  std::vector<std::string_view> efforts(runtime::kEfforts.begin(), runtime::kEfforts.end());
  efforts.push_back("none");
  const std::string effort =
      fields.word("reasoning_effort", efforts).value_or(info.default_reasoning_effort);
  prompt.thinking = effort != "none";
  if (const json::object* kwargs = fields.object("chat_template_kwargs")) {
    Fields inner = fields.inside("chat_template_kwargs", *kwargs);
    for (const std::string_view name : {"thinking", "enable_thinking"})
      if (!inner.boolean(name).value_or(true)) prompt.thinking = false;
  }
  prompt.effort = prompt.thinking ? effort : "";
  return prompt;
}

}  // namespace net
