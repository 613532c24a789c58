#include "net/replay/scenario_overrides.hpp"

#include <sstream>
#include <stdexcept>

#include "runtime/toml_document.hpp"

namespace net {
namespace {

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void put(toml::table& table, const std::string& key, const std::string& value) {
  try {
    toml::table parsed = toml::parse("value = " + value);
    if (parsed.size() == 1) {  // not a value and more behind it
      table.insert_or_assign(key, std::move(*parsed.get("value")));
      return;
    }
  } catch (const toml::parse_error&) {
    // A text without quotes.
  }
  table.insert_or_assign(key, value);
}

}  // namespace

Override parse_override(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    throw std::invalid_argument("\"" + std::string(text) +
                                "\" is no setting; expected KEY=VALUE, as in server.layout=TP8");
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::string with_overrides(std::string_view toml, const std::string& path,
                           const std::vector<Override>& overrides) {
  toml::table root = runtime::parse_toml(toml, path);
  for (const Override& setting : overrides) {
    toml::table* table = &root;
    std::vector<std::string> parts = parts_of(setting.key);
    const std::string last = std::move(parts.back());
    parts.pop_back();
    for (const std::string& part : parts) {
      table->insert(part, toml::table());  // where there is none
      toml::table* inner = (*table)[part].as_table();
      if (inner == nullptr) {
        throw std::runtime_error(path + ": " + setting.key + " cannot be set: " + part +
                                 " is no table");
      }
      table = inner;
    }
    put(*table, last, setting.value);
  }
  std::ostringstream out;
  out << root << "\n";
  return out.str();
}

std::string without_sweep(std::string_view toml, const std::string& path) {
  toml::table root = runtime::parse_toml(toml, path);
  root.erase("grid");
  root.erase("figure");
  std::ostringstream out;
  out << root << "\n";
  return out.str();
}

}  // namespace net
