#include "runtime/canonical_json.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <unordered_map>

namespace runtime {

namespace json = boost::json;

namespace {

constexpr size_t kDepthMax = 100;

// A number with a fraction or an exponent reads as a double; `parsed` stands in where from_chars
// gives none (underflow).
std::string canonical_number(const std::string& literal, double parsed) {
  if (literal.find_first_of(".eE") == std::string::npos) return literal == "-0" ? "0" : literal;
  double value = parsed;
  std::from_chars(literal.data(), literal.data() + literal.size(), value);
  const bool finite = value - value == 0;
  return finite ? json_number(value) : literal;  // too large for a double: stays as it was written
}

// What an object means when keys repeat: the first one's place, the last one's value.
void merge_repeated_keys(JsonNode& object) {
  std::unordered_map<std::string, size_t> places;
  size_t kept = 0;
  for (size_t i = 0; i < object.members.size(); ++i) {
    const auto [place, is_new] = places.emplace(object.members[i].first, kept);
    if (is_new) {
      if (kept != i) object.members[kept] = std::move(object.members[i]);
      ++kept;
    } else {
      object.members[place->second].second = std::move(object.members[i].second);
    }
  }
  object.members.resize(kept);
}

// Receives the parser's events and builds the tree.
struct NodeBuilder {
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();
  using Text = json::string_view;
  using Code = json::error_code;

  struct Open {  // a container whose end has not come
    JsonNode node;
    std::string key;  // of the member being read
  };
  std::vector<Open> open;
  std::string part;  // of a key, a string or a number
  JsonNode root;

  bool add(JsonNode node) {
    if (open.empty()) {
      root = std::move(node);
    } else {
      open.back().node.members.emplace_back(std::move(open.back().key), std::move(node));
      open.back().key.clear();
    }
    return true;
  }
  bool begin(JsonNode::Kind kind) {
    open.push_back({{kind, {}, {}}, {}});
    return true;
  }
  bool end() {
    JsonNode node = std::move(open.back().node);
    open.pop_back();
    return add(std::move(node));
  }
  std::string take(Text last) {
    part.append(last.data(), last.size());
    return std::exchange(part, {});
  }
  bool keep(Text piece) {
    part.append(piece.data(), piece.size());
    return true;
  }

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return begin(JsonNode::Kind::kObject); }
  bool on_object_end(size_t, Code&) {
    merge_repeated_keys(open.back().node);
    return end();
  }
  bool on_array_begin(Code&) { return begin(JsonNode::Kind::kArray); }
  bool on_array_end(size_t, Code&) { return end(); }
  bool on_key_part(Text piece, size_t, Code&) { return keep(piece); }
  bool on_key(Text last, size_t, Code&) {
    open.back().key = take(last);
    return true;
  }
  bool on_string_part(Text piece, size_t, Code&) { return keep(piece); }
  bool on_string(Text last, size_t, Code&) {
    return add({JsonNode::Kind::kString, take(last), {}});
  }
  bool on_number_part(Text piece, Code&) { return keep(piece); }
  bool on_int64(int64_t value, Text last, Code& code) {
    return on_double(static_cast<double>(value), last, code);
  }
  bool on_uint64(uint64_t value, Text last, Code& code) {
    return on_double(static_cast<double>(value), last, code);
  }
  bool on_double(double value, Text last, Code&) {
    return add({JsonNode::Kind::kNumber, canonical_number(take(last), value), {}});
  }
  bool on_bool(bool value, Code&) {
    return add({JsonNode::Kind::kBoolean, value ? "true" : "false", {}});
  }
  bool on_null(Code&) { return add({JsonNode::Kind::kNull, "null", {}}); }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }
};

void append_node(const JsonNode& node, const JsonStyle& style, std::string& out);

void append_members(const JsonNode& node, const JsonStyle& style, std::string& out) {
  std::vector<const std::pair<std::string, JsonNode>*> members;
  for (const auto& member : node.members) members.push_back(&member);
  const bool is_object = node.kind == JsonNode::Kind::kObject;
  if (is_object && style.sort_keys) {
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return a->first < b->first; });
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += style.comma;
    if (is_object) {
      out += json_quoted(members[i]->first);
      out += style.colon;
    }
    append_node(members[i]->second, style, out);
  }
}

void append_node(const JsonNode& node, const JsonStyle& style, std::string& out) {
  switch (node.kind) {
    case JsonNode::Kind::kString:
      out += json_quoted(node.text);
      return;
    case JsonNode::Kind::kArray:
      out += '[';
      append_members(node, style, out);
      out += ']';
      return;
    case JsonNode::Kind::kObject:
      out += '{';
      append_members(node, style, out);
      out += '}';
      return;
    default:
      out += node.text;
  }
}

}  // namespace

std::optional<JsonNode> parse_json_node(std::string_view text) {
  if (text.empty()) return std::nullopt;
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<NodeBuilder> parser(options);
  json::error_code error;
  const size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error || used != text.size()) return std::nullopt;
  return std::move(parser.handler().root);
}

JsonNode to_json_node(const json::value& value) {
  JsonNode node;
  switch (value.kind()) {
    case json::kind::null:
      return {JsonNode::Kind::kNull, "null", {}};
    case json::kind::bool_:
      return {JsonNode::Kind::kBoolean, value.get_bool() ? "true" : "false", {}};
    case json::kind::int64:
      return {JsonNode::Kind::kNumber, std::to_string(value.get_int64()), {}};
    case json::kind::uint64:
      return {JsonNode::Kind::kNumber, std::to_string(value.get_uint64()), {}};
    case json::kind::double_:
      return {JsonNode::Kind::kNumber, json_number(value.get_double()), {}};
    case json::kind::string:
      return {JsonNode::Kind::kString, std::string(value.get_string()), {}};
    case json::kind::array:
      node.kind = JsonNode::Kind::kArray;
      for (const json::value& item : value.get_array())
        node.members.emplace_back(std::string(), to_json_node(item));
      return node;
    case json::kind::object:
      node.kind = JsonNode::Kind::kObject;
      for (const auto& [key, member] : value.get_object())
        node.members.emplace_back(key, to_json_node(member));
      return node;
  }
  return node;
}

std::string write_json(const JsonNode& node, const JsonStyle& style) {
  std::string out;
  append_node(node, style, out);
  return out;
}

std::string_view json_type_name(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kNull:
      return "null";
    case JsonNode::Kind::kBoolean:
      return "boolean";
    case JsonNode::Kind::kNumber:
      return "number";
    case JsonNode::Kind::kString:
      return "string";
    case JsonNode::Kind::kArray:
      return "array";
    case JsonNode::Kind::kObject:
      return "object";
  }
  return "null";
}

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (byte >= 0x20) {
          out += c;
        } else {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        }
    }
  }
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(text, out);
  out += '"';
  return out;
}

std::string json_number(double value) {
  if (value != value) return "NaN";
  if (value - value != 0) return value > 0 ? "Infinity" : "-Infinity";
  char buffer[32];  // the longest spelling has 17 digits, sign, point and a four-character exponent
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string text(buffer, scientific.ptr);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  text.assign(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace runtime
