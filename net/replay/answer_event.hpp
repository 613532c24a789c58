// What one event of a streamed answer of an OpenAI-compatible server says to who measures it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace net {

struct TokenUsage {
  uint32_t prompt_tokens = 0, output_tokens = 0;
  uint32_t cached_tokens = 0;  // of the prompt: not computed again
};

struct AnswerEvent {
  bool token = false;     // a part of the answer: text, thoughts or a tool call
  bool finished = false;  // the answer is whole
  bool done = false;      // nothing more will come
  std::optional<TokenUsage> usage;
  std::string error;  // what the server complains of, or what is wrong with the event
};

// `data`: of a chunk of /v1/completions or /v1/chat/completions, or the closing [DONE].
AnswerEvent read_answer_event(std::string_view data);

}  // namespace net
