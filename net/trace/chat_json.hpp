// A conversation as the fields of a request to /v1/chat/completions: what the reader of such
// requests reads as the same conversation.
#pragma once

#include <boost/json/object.hpp>

#include "runtime/chat.hpp"

namespace net {

// messages, tools, tool_choice, response_format, reasoning_effort.
boost::json::object chat_json(const runtime::ChatPrompt& prompt);

}  // namespace net
