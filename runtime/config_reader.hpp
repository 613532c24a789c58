// Typed access to one JSON object of a config file; every complaint names the file, the key, what
// stood there and what would be right. A key whose value is null counts as absent.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

class ConfigReader {
 public:
  // `path` is the object's place in the file ("text_config."), put before a key in messages.
  ConfigReader(const boost::json::object& object, std::string source, std::string path);

  const boost::json::value* find(std::string_view key) const;
  uint32_t size(std::string_view key, uint32_t min, uint32_t max) const;  // required
  uint32_t size_or(std::string_view key, uint32_t absent, uint32_t min, uint32_t max) const;
  std::optional<uint32_t> optional_size(std::string_view key, uint32_t min, uint32_t max) const;
  float number(std::string_view key, double min, double max) const;  // required
  float number_or(std::string_view key, float absent, double min, double max) const;
  std::optional<float> optional_number(std::string_view key, double min, double max) const;
  bool flag_or(std::string_view key, bool absent) const;
  std::string text(std::string_view key) const;  // required
  std::string text_or(std::string_view key, std::string absent) const;
  std::vector<uint32_t> sizes(std::string_view key, uint32_t min,
                              uint32_t max) const;  // required list
  std::vector<uint32_t> size_or_list(std::string_view key, uint32_t min,
                                     uint32_t max) const;  // absent: empty
  ConfigReader object(std::string_view key) const;         // required

  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  [[noreturn]] void fail_missing(std::string_view key, const std::string& expected) const;
  [[noreturn]] void fail_value(std::string_view key, const boost::json::value& value,
                               const std::string& expected) const;
  uint32_t as_size(std::string_view key, const boost::json::value& value, uint32_t min,
                   uint32_t max) const;

  const boost::json::object* object_;
  std::string source_, path_;
};

}  // namespace runtime
