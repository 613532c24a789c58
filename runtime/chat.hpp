// A conversation as values, before it is rendered to XTML segments.
#pragma once

#include <array>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

// How much a model may think, least first.
inline constexpr std::array<std::string_view, 4> kEfforts{"low", "medium", "high", "max"};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text as the client or the model wrote it
};

struct ChatMessage {
  std::string role;  // system | user | assistant | tool
  std::string name;
  std::string content;  // text parts joined; image parts are refused before this point
  std::string reasoning;
  std::vector<ToolCall> tool_calls;
  std::string tool_call_id;  // role tool
  boost::json::value
      tools;  // a mid-conversation system message may declare more tools (array), else null
};

enum class ToolChoice { kAuto, kNone, kRequired };

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  boost::json::value tools;  // array, or null
  ToolChoice tool_choice = ToolChoice::kAuto;
  boost::json::value response_format;  // null, or {"type": "json_object"} / {"type": "json_schema",
                                       // "json_schema": {...}}
  bool thinking = true;
  std::string effort = "max";  // one of kEfforts; empty: no effort message
};

}  // namespace runtime
