#include "runtime/sim/device_file.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "kernels/base/verify.hpp"
#include "runtime/sim/device_keys.hpp"
#include "runtime/text_file.hpp"
#include "runtime/toml_document.hpp"

namespace runtime {
namespace {

class Reader {
 public:
  Reader(const toml::table& root, const std::string& path) : root_(root), path_(path) {}

  DeviceFile read() const {
    check_keys(root_, {"name", "version", "stack", "form", "constants"}, "");
    DeviceFile device;
    device.path = path_;
    device.name = text(root_, "name", "");
    device.stack = text(root_, "stack", "");
    device.version = version();
    const std::string form = text(root_, "form", "");
    if (form != "kernels" && form != "roofline") {
      fail("form", "is \"" + form + "\"; expected \"kernels\" or \"roofline\"");
    }
    device.is_roofline = form == "roofline";
    read_constants(device);
    return device;
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw std::runtime_error(path_ + ": " + key + " " + problem);
  }

  void check_keys(const toml::table& table, std::initializer_list<std::string_view> known,
                  const std::string& prefix) const {
    for (const auto& [key, value] : table) {
      const std::string_view name = key.str();
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string list;
      for (const auto& one : known) list += (list.empty() ? "" : ", ") + std::string(one);
      fail(prefix + std::string(name), "is unknown; known are " + list);
    }
  }

  std::string text(const toml::table& table, std::string_view key,
                   const std::string& prefix) const {
    const auto value = table[key].value<std::string>();
    if (!value || value->empty()) fail(prefix + std::string(key), "is missing; expected a text");
    return *value;
  }

  uint32_t version() const {
    const auto value = root_["version"].value_exact<int64_t>();
    if (!value || *value < 1 || *value > 1'000'000) {
      fail("version", "is missing or no whole number from 1 to 1000000");
    }
    return static_cast<uint32_t>(*value);
  }

  void read_constants(DeviceFile& device) const {
    const toml::table* constants = root_["constants"].as_table();
    if (constants == nullptr) fail("constants", "is missing; expected a table");
    const auto keys = device.is_roofline ? roofline_keys() : kernel_keys();
    for (const auto& [key, value] : *constants) {
      const std::string_view name = key.str();
      const bool known =
          std::any_of(keys.begin(), keys.end(), [&](const DeviceKey& k) { return k.key == name; });
      if (!known) {
        fail("constants." + std::string(name),
             "is unknown for form = \"" + std::string(device.is_roofline ? "roofline" : "kernels") +
                 "\"");
      }
    }
    for (const DeviceKey& key : keys) {
      const toml::table* constant = (*constants)[key.key].as_table();
      if (constant == nullptr) {
        fail("constants." + std::string(key.key), "is missing; expected { value, unit = \"" +
                                                      std::string(key.unit) +
                                                      "\", provenance, source }");
      }
      device.constants.push_back(read_constant(*constant, key));
      key.field(device.params) = device.constants.back().value;
    }
  }

  DeviceConstant read_constant(const toml::table& table, const DeviceKey& key) const {
    const std::string prefix = "constants." + std::string(key.key) + ".";
    check_keys(table, {"value", "unit", "provenance", "source"}, prefix);
    DeviceConstant constant;
    constant.key = key.key;
    constant.unit = text(table, "unit", prefix);
    if (constant.unit != key.unit) {
      fail(prefix + "unit",
           "is \"" + constant.unit + "\"; expected \"" + std::string(key.unit) + "\"");
    }
    constant.source = text(table, "source", prefix);
    constant.provenance = provenance(text(table, "provenance", prefix), prefix);
    const auto value = table["value"].value<double>();
    if (!value) fail(prefix + "value", "is missing; expected a number");
    if (!std::isfinite(*value) || *value < 0 || (key.positive && *value == 0)) {
      std::ostringstream shown;
      shown << "is " << *value << "; expected a number " << (key.positive ? "above 0" : "from 0");
      fail(prefix + "value", shown.str());
    }
    constant.value = *value;
    return constant;
  }

  Provenance provenance(const std::string& letter, const std::string& prefix) const {
    for (const Provenance known : {Provenance::kTable, Provenance::kSpec, Provenance::kMeasured,
                                   Provenance::kCalibrated, Provenance::kAssumed}) {
      if (letter.size() == 1 && letter[0] == static_cast<char>(known)) return known;
    }
    fail(prefix + "provenance", "is \"" + letter +
                                    "\"; expected T (kernel table), S (specification), M "
                                    "(measured), C (calibrated) or A (assumed)");
  }

  const toml::table& root_;
  const std::string& path_;
};

}  // namespace

const DeviceConstant& DeviceFile::constant(std::string_view key) const {
  const auto found = std::find_if(constants.begin(), constants.end(),
                                  [&](const DeviceConstant& c) { return c.key == key; });
  VERIFY(found != constants.end());
  return *found;
}

DeviceFile parse_device(std::string_view toml, const std::string& path) {
  const toml::table root = parse_toml(toml, path);
  return Reader(root, path).read();
}

DeviceFile read_device(const std::string& path) { return parse_device(read_text(path), path); }

std::string to_toml(const DeviceFile& device) {
  toml::table root;
  root.insert("name", device.name);
  root.insert("version", static_cast<int64_t>(device.version));
  root.insert("stack", device.stack);
  root.insert("form", device.is_roofline ? "roofline" : "kernels");
  toml::table constants;
  for (const DeviceConstant& constant : device.constants) {
    toml::table one;
    one.insert("value", constant.value);
    one.insert("unit", constant.unit);
    one.insert("provenance", std::string(1, static_cast<char>(constant.provenance)));
    one.insert("source", constant.source);
    one.is_inline(true);
    constants.insert(constant.key, std::move(one));
  }
  root.insert("constants", std::move(constants));
  std::ostringstream out;
  out << root << "\n";
  return out.str();
}

}  // namespace runtime
