#include "runtime/config_reader.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace runtime {

namespace json = boost::json;

namespace {

std::string whole_number(uint32_t min, uint32_t max) {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string number_between(double min, double max) {
  std::ostringstream out;
  out << "a number from " << min << " to " << max;
  return out.str();
}

// Long values would bury the message.
std::string shown(const json::value& value) {
  std::string out = json::serialize(value);
  if (out.size() > 60) out = out.substr(0, 57) + "...";
  return out;
}

}  // namespace

ConfigReader::ConfigReader(const json::object& object, std::string source, std::string path)
    : object_(&object), source_(std::move(source)), path_(std::move(path)) {}

void ConfigReader::fail(std::string_view key, const std::string& problem) const {
  throw std::runtime_error(source_ + ": " + path_ + std::string(key) + " " + problem);
}

void ConfigReader::fail_missing(std::string_view key, const std::string& expected) const {
  fail(key, "is missing; expected " + expected);
}

void ConfigReader::fail_value(std::string_view key, const json::value& value,
                              const std::string& expected) const {
  fail(key, "is " + shown(value) + "; expected " + expected);
}

const json::value* ConfigReader::find(std::string_view key) const {
  const json::value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

uint32_t ConfigReader::as_size(std::string_view key, const json::value& value, uint32_t min,
                               uint32_t max) const {
  std::optional<uint64_t> number;
  if (value.is_uint64()) number = value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) number = static_cast<uint64_t>(value.get_int64());
  if (!number || *number < min || *number > max) fail_value(key, value, whole_number(min, max));
  return static_cast<uint32_t>(*number);
}

std::optional<uint32_t> ConfigReader::optional_size(std::string_view key, uint32_t min,
                                                    uint32_t max) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return as_size(key, *value, min, max);
}

uint32_t ConfigReader::size(std::string_view key, uint32_t min, uint32_t max) const {
  const auto value = optional_size(key, min, max);
  if (!value) fail_missing(key, whole_number(min, max));
  return *value;
}

uint32_t ConfigReader::size_or(std::string_view key, uint32_t absent, uint32_t min,
                               uint32_t max) const {
  return optional_size(key, min, max).value_or(absent);
}

std::optional<float> ConfigReader::optional_number(std::string_view key, double min,
                                                   double max) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail_value(key, *value, number_between(min, max));
  const double number = value->to_number<double>();
  if (!(number >= min && number <= max)) fail_value(key, *value, number_between(min, max));
  return static_cast<float>(number);
}

float ConfigReader::number(std::string_view key, double min, double max) const {
  const auto value = optional_number(key, min, max);
  if (!value) fail_missing(key, number_between(min, max));
  return *value;
}

float ConfigReader::number_or(std::string_view key, float absent, double min, double max) const {
  return optional_number(key, min, max).value_or(absent);
}

bool ConfigReader::flag_or(std::string_view key, bool absent) const {
  const json::value* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_bool()) fail_value(key, *value, "true or false");
  return value->get_bool();
}

std::string ConfigReader::text_or(std::string_view key, std::string absent) const {
  const json::value* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_string()) fail_value(key, *value, "a string");
  return std::string(value->get_string());
}

std::string ConfigReader::text(std::string_view key) const {
  if (find(key) == nullptr) fail_missing(key, "a string");
  return text_or(key, {});
}

std::vector<uint32_t> ConfigReader::sizes(std::string_view key, uint32_t min, uint32_t max) const {
  const json::value* value = find(key);
  const std::string expected =
      "a list of whole numbers from " + std::to_string(min) + " to " + std::to_string(max);
  if (value == nullptr) fail_missing(key, expected);
  if (!value->is_array()) fail_value(key, *value, expected);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < value->get_array().size(); ++i) {
    out.push_back(
        as_size(std::string(key) + "[" + std::to_string(i) + "]", value->get_array()[i], min, max));
  }
  return out;
}

std::vector<uint32_t> ConfigReader::size_or_list(std::string_view key, uint32_t min,
                                                 uint32_t max) const {
  const json::value* value = find(key);
  if (value == nullptr) return {};
  if (value->is_array()) return sizes(key, min, max);
  return {as_size(key, *value, min, max)};
}

ConfigReader ConfigReader::object(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) fail_missing(key, "an object");
  if (!value->is_object()) fail_value(key, *value, "an object");
  return ConfigReader(value->get_object(), source_, path_ + std::string(key) + ".");
}

}  // namespace runtime
