// Tools of everyday life as tables: what they are called, what they take, how one asks for them,
// what they return and how the answer then reads.
#pragma once

#include <span>
#include <string_view>

namespace runtime {

// Each field uses the choices and slots of phrase(); the slots are the parameters and, in `result`
// and `answer`, the facts. A list of slots is "name:kind;name:kind" with the kinds of ToolValue.
struct ToolPattern {
  std::string_view name, description;
  std::string_view parameters, requests;
  std::string_view facts, answer;
};

std::span<const ToolPattern> tool_patterns();

}  // namespace runtime
