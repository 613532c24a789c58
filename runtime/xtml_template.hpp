// Renders a conversation to token ids: XTML segments, each encoded on its own.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/chat.hpp"
#include "runtime/tokenizer.hpp"

namespace runtime {

struct Segment {
  std::string text;
  bool control = false;  // a control marker, looked up by name; else ordinary text
};

// Errors name the message index and field (e.g. "messages[2].tool_calls[0].function.arguments").
kernels::Result<std::vector<Segment>> render_xtml(const ChatPrompt& prompt);

// An answer as a model writes it: from what a prompt ends with to the end of the message. Errors
// are those of a conversation whose messages[0] it is.
kernels::Result<std::vector<Segment>> render_answer(const ChatMessage& answer, bool thinking);

// Errors when the tokenizer lacks a control marker the segments need. Once keep_going says no, the
// ids are incomplete.
kernels::Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                                      const std::vector<Segment>& segments,
                                                      const KeepGoing& keep_going = {});

}  // namespace runtime
