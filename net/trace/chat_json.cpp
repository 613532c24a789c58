#include "net/trace/chat_json.hpp"

#include <boost/json/array.hpp>

namespace net {

namespace json = boost::json;

namespace {

json::array tool_calls_json(const std::vector<runtime::ToolCall>& calls) {
  json::array list;
  for (const runtime::ToolCall& call : calls)
    list.push_back({{"id", call.id},
                    {"type", "function"},
                    {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return list;
}

json::object message_json(const runtime::ChatMessage& message) {
  json::object object{{"role", message.role}};
  if (!message.name.empty()) object["name"] = message.name;
  object["content"] = message.content;
  if (!message.reasoning.empty()) object["reasoning_content"] = message.reasoning;
  if (!message.tool_calls.empty()) object["tool_calls"] = tool_calls_json(message.tool_calls);
  if (message.role == "tool") object["tool_call_id"] = message.tool_call_id;
  if (!message.tools.is_null()) object["tools"] = message.tools;
  return object;
}

}  // namespace

json::object chat_json(const runtime::ChatPrompt& prompt) {
  json::object object;
  json::array messages;
  for (const runtime::ChatMessage& message : prompt.messages)
    messages.push_back(message_json(message));
  object["messages"] = std::move(messages);
  if (!prompt.tools.is_null()) object["tools"] = prompt.tools;
  if (prompt.tool_choice == runtime::ToolChoice::kNone) object["tool_choice"] = "none";
  if (prompt.tool_choice == runtime::ToolChoice::kRequired) object["tool_choice"] = "required";
  if (!prompt.response_format.is_null()) object["response_format"] = prompt.response_format;
  object["reasoning_effort"] = prompt.thinking ? prompt.effort : "none";
  return object;
}

}  // namespace net
