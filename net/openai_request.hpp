// The parts of a request body that several endpoints read. Readers report through the Fields they
// are given.
#pragma once

#include <string>

#include "actors/service.hpp"
#include "net/json_fields.hpp"
#include "net/openai_answer.hpp"
#include "runtime/request.hpp"

namespace net {

// Fields that chat and completions share: what is asked of the model, and how the answer is
// delivered.
struct CommonFields {
  std::string model;
  bool stream = false, include_usage = false;
};

inline constexpr int64_t kChoicesPerPromptMax = 128;

struct TokenLimits {
  int64_t least = 1;         // completions may ask for 0 tokens: to score a prompt
  uint32_t when_absent = 0;  // at most so many, if the context has room; 0: to its end
};

// Reads everything but the prompt and the log-probabilities into `generate`.
CommonFields read_common(Fields& fields, const actors::ServiceInfo& info, TokenLimits limits,
                         runtime::GenerateRequest& generate);

// From an element of the array `name`. Whether the model knows the id is not asked here.
std::optional<runtime::TokenId> read_token_id(Fields& fields, std::string_view name, size_t index,
                                              const boost::json::value& value);

// messages, tools, tool_choice, response_format, reasoning_effort, chat_template_kwargs
runtime::ChatPrompt read_chat_prompt(Fields& fields, const actors::ServiceInfo& info);

// tools, checked; what is not a function is left out. null when none is left.
boost::json::value read_tools(Fields& fields);
void read_tool_choice(Fields& fields, runtime::ChatPrompt& prompt);
std::vector<runtime::ChatMessage> read_messages(Fields& fields);

}  // namespace net
