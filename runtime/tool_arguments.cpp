#include "runtime/tool_arguments.hpp"

#include <utility>

#include "runtime/canonical_json.hpp"

namespace runtime {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

// The text itself when it is JSON, else the text as a JSON string.
std::string as_json(const std::string& text) {
  return parse_json_node(text) ? text : json_quoted(text);
}

}  // namespace

void ToolArguments::separate(std::string& out) {
  out += any_members_ ? kSpacedJson.comma : "{";
  any_members_ = true;
}

void ToolArguments::begin_member(std::string_view key, std::string& out) {
  separate(out);
  out += json_quoted(key);
  out += kSpacedJson.colon;
}

void ToolArguments::begin_argument(std::string_view key, std::string_view type, std::string& out) {
  end_element(out);
  if (type == "string") {
    element_ = Element::kString;
    begin_member(key, out);
    out += '"';
  } else {
    element_ = Element::kValue;
    key_ = key;
  }
}

void ToolArguments::begin_json(std::string& out) {
  end_element(out);
  element_ = Element::kJson;
}

void ToolArguments::append(std::string_view text, std::string& out) {
  if (element_ == Element::kString) {
    append_json_escaped(text, out);
  } else {
    held_ += text;
  }
}

void ToolArguments::end_element(std::string& out) {
  if (element_ == Element::kString) out += '"';
  if (element_ == Element::kValue) {
    begin_member(key_, out);
    out += as_json(held_);
  }
  if (element_ == Element::kJson) end_json(out);
  element_ = Element::kNone;
  held_.clear();
}

void ToolArguments::end_json(std::string& out) {
  const size_t first = held_.find_first_not_of(kWhiteSpace);
  if (first == std::string::npos) return;
  const auto node = parse_json_node(held_);
  if (!node || node->kind != JsonNode::Kind::kObject) {
    begin_member("json", out);  // no text is lost, and the arguments stay an object
    out += as_json(held_);
  } else if (!node->members.empty()) {
    const size_t last = held_.find_last_of('}');
    separate(out);
    out += std::string_view(held_).substr(first + 1, last - first - 1);  // between the braces
  }
}

void ToolArguments::finish(std::string& out) {
  end_element(out);
  out += any_members_ ? "}" : "{}";
  any_members_ = false;
}

}  // namespace runtime
