// Splits a chat answer into reasoning, content and tool calls while it streams. Works on token ids,
// so text that only looks like markup stays text. Streamed and whole answers pass
// through the same code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/chat.hpp"
#include "runtime/tokenizer.hpp"

namespace runtime {

struct ChatDelta {
  enum class Kind { kReasoning, kContent, kToolBegin, kToolArguments };
  Kind kind = Kind::kContent;
  std::string text;  // reasoning, content, or a piece of the arguments' JSON text
  uint32_t tool_index = 0;
  std::string tool_name;  // kToolBegin
};

class XtmlParser {
 public:
  // thinking: the generation prompt ended inside <think>, else inside <response>.
  XtmlParser(std::shared_ptr<const Tokenizer> tokenizer, bool thinking);
  ~XtmlParser();
  void push(TokenId id, std::vector<ChatDelta>& out);
  void finish(std::vector<ChatDelta>&
                  out);  // flushes; closes the JSON of an unfinished call as far as it is valid
  bool saw_tool_call() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace runtime
