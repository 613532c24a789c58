#include "net/json_fields.hpp"

#include <boost/json/parser.hpp>
#include <charconv>
#include <cmath>

#include "net/openai_writer.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr size_t kShownCharacters = 40;  // of a string in an error message

kernels::Error parse_error(const std::string& subject, std::string_view what, size_t offset) {
  return kernels::invalid(subject + " is not valid JSON: " + std::string(what) + " at byte " +
                          std::to_string(offset));
}

std::string shown_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string range_text(NumberRange range) {
  if (range.open_low)
    return "above " + shown_number(range.low) + " and at most " + shown_number(range.high);
  return "between " + shown_number(range.low) + " and " + shown_number(range.high);
}

kernels::Result<json::object> parse_object(std::string_view body, const std::string& subject) {
  if (body.empty()) return kernels::invalid(subject + " is empty; a JSON object is expected");
  if (const auto offset = runtime::find_invalid_utf8(body); offset != std::string_view::npos)
    return kernels::invalid(subject + " is not valid UTF-8 at byte " + std::to_string(offset));
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::parser parser({}, options);
  json::error_code code;
  const size_t used = parser.write_some(body.data(), body.size(), code);
  if (code == json::error::too_deep)
    return kernels::invalid(subject + " is nested deeper than " + std::to_string(kJsonDepthMax) +
                            " levels");
  if (code == json::error::incomplete)
    return parse_error(subject, "it ends too early", body.size());
  if (code) return parse_error(subject, code.message(), used);
  if (used < body.size()) return parse_error(subject, "text after the end of the object", used);
  json::value value = parser.release();
  if (!value.is_object())
    return kernels::invalid(subject + " must be a JSON object, got " + describe(value));
  return std::move(value.get_object());
}

}  // namespace

std::string describe(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return value.get_bool() ? "true" : "false";
    case json::kind::int64:
      return std::to_string(value.get_int64());
    case json::kind::uint64:
      return std::to_string(value.get_uint64());
    case json::kind::double_:
      return shown_number(value.get_double());
    case json::kind::array:
      return value.get_array().empty() ? "an empty array" : "an array";
    case json::kind::object:
      return "an object";
    case json::kind::string:
      break;
  }
  const std::string_view text(value.get_string().data(), value.get_string().size());
  std::string shown;
  append_quoted(shown, runtime::code_point_prefix(text, kShownCharacters));
  if (runtime::code_point_prefix(text, kShownCharacters).size() < text.size())
    shown.insert(shown.size() - 1, "...");
  return shown;
}

std::string element(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

std::optional<int64_t> exact_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;  // uint64 is only produced beyond int64's range
  const double number = value.get_double();
  constexpr double kExact =
      9007199254740992.0;  // 2^53: beyond it a double no longer names one integer
  if (!(std::fabs(number) <= kExact) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

Fields::Fields(const json::object& object, std::string path, std::optional<kernels::Error>& error)
    : object_(object), path_(std::move(path)), error_(error) {}

Fields Fields::inside(std::string_view name, const json::object& object) const {
  return Fields(object, path(name), error_);
}

const json::value* Fields::find(std::string_view name) const {
  const json::value* value = object_.if_contains(json::string_view(name.data(), name.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  expected(name, "true or false", *value);
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view name, NumberRange range) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  json::error_code code;
  const double number = value->is_number() ? value->to_number<double>(code) : std::nan("");
  const bool inside =
      number <= range.high && (range.open_low ? number > range.low : number >= range.low);
  if (inside) return number;
  expected(name, "a number " + range_text(range), *value);
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name, IntegerRange range) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = exact_integer(*value);
  if (number && *number >= range.low && *number <= range.high) return number;
  expected(name,
           "an integer between " + std::to_string(range.low) + " and " + std::to_string(range.high),
           *value);
  return std::nullopt;
}

std::optional<std::string> Fields::string(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string())
    return std::string(value->get_string().data(), value->get_string().size());
  expected(name, "a string", *value);
  return std::nullopt;
}

std::optional<std::string> Fields::word(std::string_view name,
                                        const std::vector<std::string_view>& words) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::string list;
  for (const std::string_view word : words) {
    if (value->is_string() && value->get_string() == json::string_view(word.data(), word.size()))
      return std::string(word);
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  expected(name, words.size() == 1 ? "\"" + list + "\"" : "one of " + list, *value);
  return std::nullopt;
}

const json::object* Fields::object(std::string_view name) {
  const json::value* value = find(name);
  if (value != nullptr && !value->is_object()) expected(name, "an object", *value);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* Fields::array(std::string_view name) {
  const json::value* value = find(name);
  if (value != nullptr && !value->is_array()) expected(name, "an array", *value);
  return value == nullptr ? nullptr : value->if_array();
}

std::string Fields::path(std::string_view name) const {
  if (name.empty()) return path_;
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Fields::fail(std::string_view name, std::string_view complaint) {
  if (ok()) fail(kernels::invalid(path(name) + " " + std::string(complaint), path(name)));
}

void Fields::fail(kernels::Error error) {
  if (ok()) error_ = std::move(error);
}

void Fields::expected(std::string_view name, std::string_view what, const json::value& got) {
  if (ok()) fail(name, "must be " + std::string(what) + ", got " + describe(got));
}

JsonBody::JsonBody(std::string_view text, std::string_view what) {
  auto object = parse_object(text, std::string(what));
  if (object)
    object_ = std::move(*object);
  else
    error_ = object.error();
}

}  // namespace net
