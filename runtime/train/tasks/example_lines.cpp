#include "runtime/train/tasks/example_lines.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

namespace runtime {

namespace json = boost::json;

namespace {

json::object message_object(const ChatMessage& message) {
  json::object out{{"role", message.role}, {"content", message.content}};
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (message.role == "tool") out["tool_call_id"] = message.tool_call_id;
  json::array calls;
  for (const ToolCall& call : message.tool_calls) {
    calls.push_back({{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!calls.empty()) out["tool_calls"] = std::move(calls);
  return out;
}

}  // namespace

void write_example_line(const Example& example, std::ostream& out) {
  const ChatPrompt& prompt = example.prompt;
  json::array messages;
  for (const ChatMessage& message : prompt.messages) messages.push_back(message_object(message));
  json::object request{{"messages", std::move(messages)},
                       {"reasoning_effort", prompt.thinking ? prompt.effort : "none"}};
  if (prompt.tools.is_array()) request["tools"] = prompt.tools;
  if (prompt.tool_choice == ToolChoice::kRequired) request["tool_choice"] = "required";
  out << json::serialize(json::object{{"source", text_source_name(example.source)},
                                      {"request", std::move(request)},
                                      {"answer", message_object(example.answer)},
                                      {"contains", example.expected.contains}})
      << "\n";
}

}  // namespace runtime
