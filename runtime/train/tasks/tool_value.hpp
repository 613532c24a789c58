// The values that tool calls carry: of every JSON type, with the way a user would write them.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "runtime/train/tasks/task_words.hpp"

namespace runtime {

struct ToolValue {
  boost::json::value value;
  std::string spoken;          // as it stands in a sentence
  boost::json::object schema;  // {"type": "string"} and so on
};

// kind: a type with its range, or the kind of word: "integer 1 30", "number 5", "boolean", "choice
// low,high", "strings food", "integers", "city", "person", "title", "date", "email", ...
ToolValue make_tool_value(TaskWords& words, std::string_view kind);

// One of the kinds at random, for fields that mean nothing in particular.
std::string_view some_tool_value_kind(TaskRandom& random);

}  // namespace runtime
