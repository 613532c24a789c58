// JSON text as the model was trained to see it: spelled like Python's json module with non-ASCII
// characters kept. Key order is the client's or sorted; whole numbers keep their digits however
// long they are, fractions get the shortest spelling that reads back the same ("0.5", "2.0",
// "1e-05").
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace runtime {

struct JsonNode {
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string
      text;  // a scalar: the characters of a string (not escaped), else its canonical spelling
  std::vector<std::pair<std::string, JsonNode>>
      members;  // of an object; of an array: items, with empty keys
};

struct JsonStyle {
  std::string_view comma, colon;
  bool sort_keys = false;  // recursively, by code point
};
inline constexpr JsonStyle kSpacedJson{", ", ": ", false};
inline constexpr JsonStyle kCompactSortedJson{",", ":", true};

// Empty when `text` is not one JSON value, or is nested deeper than 100 levels. Of members with one
// key the last value counts.
std::optional<JsonNode> parse_json_node(std::string_view text);
JsonNode to_json_node(const boost::json::value& value);
std::string write_json(const JsonNode& node, const JsonStyle& style);

// "null", "boolean", "number", "string", "array" or "object".
std::string_view json_type_name(JsonNode::Kind kind);

// Appends UTF-8 text as the inside of a JSON string; pieces can be escaped one by one.
void append_json_escaped(std::string_view text, std::string& out);
std::string json_quoted(std::string_view text);

std::string json_number(double value);

}  // namespace runtime
