#include "runtime/sim/device_file.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "kernels/base/verify.hpp"
#include "runtime/sim/device_keys.hpp"
#include "runtime/text_file.hpp"
#include "runtime/toml_document.hpp"
#include "runtime/toml_fields.hpp"

namespace runtime {
namespace {

constexpr double kMost = 1e30;  // of any constant
constexpr std::array kProvenances = {Provenance::kTable, Provenance::kSpec, Provenance::kMeasured,
                                     Provenance::kCalibrated, Provenance::kAssumed};

// Some text, not an empty one.
void read_text_of(TomlFields& in, std::string_view key, std::string& out) {
  in.text(key, out);
  if (in.has(key) && out.empty()) in.fail(key, "is empty; expected a text");
}

DeviceConstant read_constant(TomlFields& in, const DeviceKey& key) {
  DeviceConstant out;
  out.key = key.key;
  in.number("value", out.value, 0, kMost);
  if (in.has("value") && key.positive && out.value == 0)
    in.fail("value", "is 0; expected a number above 0");
  size_t unit = 0;
  in.one_of("unit", unit, {key.unit});
  read_text_of(in, "source", out.source);
  size_t provenance = 0;
  in.one_of("provenance", provenance, {"T", "S", "M", "C", "A"});
  in.finish();
  in.require("value", "a number");
  in.require("unit", '"' + std::string(key.unit) + '"');
  in.require("provenance", "T (kernel table), S (specification), M (measured), C (calibrated) or "
                           "A (assumed)");
  in.require("source", "a text");
  out.unit = key.unit;
  out.provenance = kProvenances[provenance];
  return out;
}

void read_constants(TomlFields& in, DeviceFile& device) {
  const auto keys = device.is_roofline ? roofline_keys() : kernel_keys();
  for (const DeviceKey& key : keys) {
    in.table(key.key, [&](TomlFields& constant) {
      device.constants.push_back(read_constant(constant, key));
      key.field(device.params) = device.constants.back().value;
    });
  }
  in.finish();
  for (const DeviceKey& key : keys)
    in.require(key.key, "{ value, unit = \"" + std::string(key.unit) + "\", provenance, source }");
}

}  // namespace

const DeviceConstant& DeviceFile::constant(std::string_view key) const {
  const auto found = std::find_if(constants.begin(), constants.end(),
                                  [&](const DeviceConstant& c) { return c.key == key; });
  VERIFY(found != constants.end());
  return *found;
}

DeviceFile parse_device(std::string_view toml, const std::string& path) {
  TomlFields in = TomlFields::parse(toml, path);
  DeviceFile device;
  device.path = path;
  read_text_of(in, "name", device.name);
  read_text_of(in, "stack", device.stack);
  in.whole("version", device.version, 1, 1'000'000);
  in.one_of("form", device.is_roofline, {"kernels", "roofline"});
  in.table("constants", [&](TomlFields& constants) { read_constants(constants, device); });
  in.finish();
  in.require("name", "a text");
  in.require("stack", "the month of the software, as a text");
  in.require("version", "a whole number");
  in.require("form", "\"kernels\" or \"roofline\"");
  in.require("constants", "a table");
  return device;
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
