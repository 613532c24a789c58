// The tools that one generated conversation declares: everyday ones from the tables and made-up
// ones whose names, fields and values nobody has seen before.
#pragma once

#include <boost/json/array.hpp>
#include <map>
#include <string>
#include <vector>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/tool_pattern.hpp"
#include "runtime/train/tasks/tool_value.hpp"

namespace runtime {

struct ToolParameter {
  std::string name, kind, description;
  bool required = true;
};

struct GeneratedTool {
  std::string name, description;
  std::vector<ToolParameter> parameters;  // by name, as the template shows them
  const ToolPattern* pattern = nullptr;   // of an everyday tool
  std::string verb, object;               // of a made-up one
};

// "name:kind;name:kind" of a table.
std::vector<ToolParameter> parse_parameters(std::string_view list);

std::vector<GeneratedTool> make_tool_box(TaskWords& words, size_t count);
// As a client declares them: [{"type": "function", "function": {...}}].
boost::json::array declare_tools(TaskWords& words, const std::vector<GeneratedTool>& tools);

// A request and the call that meets it, sometimes two; or the result of the call and an answer that
// uses it; or a request that no tool meets. Only the last exchange of a conversation may end with a
// call. `number` tells the calls of a conversation apart.
Exchange tool_exchange(TaskWords& words, const std::vector<GeneratedTool>& tools, bool is_last,
                       int number);

}  // namespace runtime
