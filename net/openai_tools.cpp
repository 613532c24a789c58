// tools and tool_choice of a chat request.
#include "net/openai_request.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr size_t kToolsMax = 1024;
constexpr size_t kToolNameBytesMax = 128;

std::string_view name_of(const json::value& tool) {
  const json::string& name = tool.get_object().at("function").get_object().at("name").get_string();
  return {name.data(), name.size()};
}

// True if the tool is a function (then it is complete); others, like web_search, are for other
// servers.
bool is_function_tool(const json::value& tool, Fields& owner, const std::string& name) {
  if (!tool.is_object()) {
    owner.expected(name, "an object", tool);
    return false;
  }
  Fields fields = owner.inside(name, tool.get_object());
  if (fields.find("type") == nullptr) fields.fail("type", "is required");
  if (fields.string("type").value_or("") != "function") return false;
  const json::object* function = fields.object("function");
  if (function == nullptr) {
    fields.fail("function", "is required");
    return false;
  }
  Fields inner = fields.inside("function", *function);
  if (inner.find("name") == nullptr) inner.fail("name", "is required");
  const std::string function_name = inner.string("name").value_or("");
  if (function_name.empty() || function_name.size() > kToolNameBytesMax)
    inner.fail("name", "must be 1 to 128 bytes long, got " + std::to_string(function_name.size()));
  inner.string("description");
  inner.object("parameters");
  inner.boolean("strict");
  return inner.ok();
}

// Leaves only the tools of this name; null when there is none.
bool keep_only(json::value& tools, std::string_view name) {
  if (tools.is_null()) return false;
  json::array kept;
  for (const json::value& tool : tools.get_array())
    if (name_of(tool) == name) kept.push_back(tool);
  const bool found = !kept.empty();
  if (found)
    tools = std::move(kept);
  else
    tools = nullptr;
  return found;
}

void choose_named(const json::object& choice, const Fields& fields, runtime::ChatPrompt& prompt) {
  Fields outer = fields.inside("tool_choice", choice);
  if (outer.find("type") == nullptr) outer.fail("type", "is required");
  outer.word("type", {"function"});
  const json::object* function = outer.object("function");
  if (function == nullptr) return outer.fail("function", "is required");
  Fields inner = outer.inside("function", *function);
  if (inner.find("name") == nullptr) inner.fail("name", "is required");
  const std::string name = inner.string("name").value_or("");
  if (!fields.ok()) return;
  bool found = keep_only(prompt.tools, name);
  for (runtime::ChatMessage& message : prompt.messages)
    found = keep_only(message.tools, name) || found;
  if (!found) return inner.expected("name", "the name of a function in tools", *inner.find("name"));
  prompt.tool_choice = runtime::ToolChoice::kRequired;
}

}  // namespace

json::value read_tools(Fields& fields) {
  const json::array* tools = fields.array("tools");
  if (tools == nullptr) return nullptr;
  if (tools->size() > kToolsMax)
    fields.fail("tools", "must hold at most 1024 tools, got " + std::to_string(tools->size()));
  json::array functions;
  for (size_t i = 0; i < tools->size() && fields.ok(); ++i)
    if (is_function_tool((*tools)[i], fields, element("tools", i)))
      functions.push_back((*tools)[i]);
  if (functions.empty()) return nullptr;
  return functions;
}

void read_tool_choice(Fields& fields, runtime::ChatPrompt& prompt) {
  const json::value* choice = fields.find("tool_choice");
  if (choice == nullptr || !fields.ok()) return;
  if (const json::object* named = choice->if_object()) return choose_named(*named, fields, prompt);
  bool any_tools = !prompt.tools.is_null();
  for (const runtime::ChatMessage& message : prompt.messages)
    any_tools = any_tools || !message.tools.is_null();
  const bool is_word = choice->is_string();
  if (is_word && choice->get_string() == "auto") return;
  if (is_word && choice->get_string() == "none") {
    if (any_tools)
      prompt.tool_choice = runtime::ToolChoice::kNone;  // without tools there is nothing to forbid
    return;
  }
  if (!is_word || choice->get_string() != "required")
    return fields.expected(
        "tool_choice",
        "auto, none, required or {\"type\": \"function\", \"function\": {\"name\": ...}}", *choice);
  if (!any_tools) return fields.fail("tool_choice", "is \"required\", but tools lists no function");
  prompt.tool_choice = runtime::ToolChoice::kRequired;
}

}  // namespace net
