#include "runtime/toml_fields.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "runtime/text_file.hpp"
#include "runtime/toml_document.hpp"

namespace runtime {

struct TomlFields::Node {
  std::shared_ptr<const toml::table> root;  // keeps `here` alive
  const toml::table* here = nullptr;
};

namespace {

std::string shown(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

TomlFields::TomlFields(std::shared_ptr<const Node> node, std::string path, std::string prefix)
    : node_(std::move(node)), path_(std::move(path)), prefix_(std::move(prefix)) {}

TomlFields TomlFields::parse(std::string_view toml, const std::string& path) {
  auto root = std::make_shared<const toml::table>(parse_toml(toml, path));
  const toml::table* here = root.get();
  return {std::make_shared<const Node>(Node{std::move(root), here}), path, ""};
}

TomlFields TomlFields::load(const std::string& path) { return parse(read_text(path), path); }

void TomlFields::fail(std::string_view key, const std::string& problem) const {
  throw std::runtime_error(path_ + ": " + prefix_ + std::string(key) + " " + problem);
}

bool TomlFields::has(std::string_view key) const { return node_->here->contains(key); }

void TomlFields::require(std::string_view key, std::string_view what) const {
  if (!has(key)) fail(key, "is missing; expected " + std::string(what));
}

void TomlFields::text(std::string_view key, std::string& out) {
  asked_.emplace(key);
  if (!has(key)) return;
  const auto value = (*node_->here)[key].value_exact<std::string>();
  if (!value) fail(key, "is no text; expected one in quotes");
  out = *value;
}

void TomlFields::texts(std::string_view key, std::vector<std::string>& out) {
  asked_.emplace(key);
  if (!has(key)) return;
  out.clear();
  const toml::array* items = (*node_->here)[key].as_array();
  if (items == nullptr) {
    out.emplace_back();
    return text(key, out.back());
  }
  for (const toml::node& item : *items) {
    const auto value = item.value_exact<std::string>();
    if (!value) fail(key, "holds something else than texts; expected an array of texts");
    out.push_back(*value);
  }
}

void TomlFields::flag(std::string_view key, bool& out) {
  asked_.emplace(key);
  if (!has(key)) return;
  const auto value = (*node_->here)[key].value_exact<bool>();
  if (!value) fail(key, "is neither true nor false");
  out = *value;
}

void TomlFields::number(std::string_view key, double& out, double low, double high) {
  asked_.emplace(key);
  if (!has(key)) return;
  const auto value = (*node_->here)[key].value<double>();
  if (!value || !(*value >= low && *value <= high)) {
    fail(key, (value ? "is " + shown(*value) : std::string("is no number")) +
                  "; expected a number from " + shown(low) + " to " + shown(high));
  }
  out = *value;
}

void TomlFields::numbers(std::string_view key, std::vector<double>& out, double low,
                         double high) {
  asked_.emplace(key);
  if (!has(key)) return;
  const toml::array* items = (*node_->here)[key].as_array();
  if (items == nullptr) fail(key, "is no array of numbers");
  out.clear();
  for (const toml::node& item : *items) {
    const auto value = item.value<double>();
    if (!value || !(*value >= low && *value <= high)) {
      fail(key, "holds something else than numbers from " + shown(low) + " to " + shown(high));
    }
    out.push_back(*value);
  }
}

std::optional<uint64_t> TomlFields::whole_number(std::string_view key, uint64_t low,
                                                 uint64_t high) {
  asked_.emplace(key);
  if (!has(key)) return std::nullopt;
  const auto value = (*node_->here)[key].value_exact<int64_t>();
  const bool fits =
      value && *value >= 0 && uint64_t(*value) >= low && static_cast<uint64_t>(*value) <= high;
  if (!fits) {
    fail(key, (value ? "is " + std::to_string(*value) : std::string("is no whole number")) +
                  "; expected a whole number from " + std::to_string(low) + " to " +
                  std::to_string(high));
  }
  return static_cast<uint64_t>(*value);
}

std::optional<size_t> TomlFields::place_in(std::string_view key,
                                           const std::vector<std::string_view>& known) {
  std::string value;
  text(key, value);
  if (!has(key)) return std::nullopt;
  const auto found = std::find(known.begin(), known.end(), value);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  std::string list;
  for (const std::string_view one : known)
    list += (list.empty() ? "\"" : ", \"") + std::string(one) + "\"";
  fail(key, "is \"" + value + "\"; expected one of " + list);
}

void TomlFields::table(std::string_view key, const std::function<void(TomlFields&)>& read) {
  asked_.emplace(key);
  if (!has(key)) return;
  const toml::table* here = (*node_->here)[key].as_table();
  if (here == nullptr) fail(key, "is no table");
  TomlFields fields(std::make_shared<const Node>(Node{node_->root, here}), path_,
                    prefix_ + std::string(key) + ".");
  read(fields);
  fields.finish();
}

void TomlFields::tables(std::string_view key, const std::function<void(TomlFields&)>& read) {
  asked_.emplace(key);
  if (!has(key)) return;
  const toml::array* items = (*node_->here)[key].as_array();
  if (items == nullptr) fail(key, "is no array of tables; expected [[" + std::string(key) + "]]");
  size_t index = 0;
  for (const toml::node& item : *items) {
    const std::string name = std::string(key) + "[" + std::to_string(index++) + "]";
    const toml::table* here = item.as_table();
    if (here == nullptr) fail(name, "is no table");
    TomlFields fields(std::make_shared<const Node>(Node{node_->root, here}), path_,
                      prefix_ + name + ".");
    read(fields);
    fields.finish();
  }
}

void TomlFields::finish() const {
  for (const auto& [key, value] : *node_->here) {
    const std::string_view name = key.str();
    if (asked_.find(name) != asked_.end()) continue;
    std::string list;
    for (const std::string& one : asked_) list += (list.empty() ? "" : ", ") + one;
    fail(name, "is unknown; known are " + list);
  }
}

}  // namespace runtime
