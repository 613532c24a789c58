// Device files: those that ship, and every way a file can be wrong.
#include "runtime/sim/device_file.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "runtime/sim/device_keys.hpp"
#include "runtime/text_file.hpp"

namespace {

using runtime::DeviceFile;
using runtime::Provenance;

const std::string kDevices = SLUICE_SOURCE_DIR "/config/devices/";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_refused(const std::string& text, const std::string& message) {
  CAPTURE(message);
  CHECK_THROWS_WITH(runtime::parse_device(text, "d.toml"), Catch::Contains(message));
}

}  // namespace

TEST_CASE("Every device that ships can be read, with a source for each constant",
          "[runtime][sim]") {
  for (const std::string name : {"gb300", "gb200", "b300", "h200", "cpu-epyc"}) {
    CAPTURE(name);
    const DeviceFile device = runtime::read_device(kDevices + name + ".toml");
    CHECK(device.name == name);
    CHECK(device.version >= 1);
    CHECK(device.params.memory_bytes > 0);
    const auto keys = device.is_roofline ? runtime::roofline_keys() : runtime::kernel_keys();
    CHECK(device.constants.size() == keys.size());
    for (const auto& constant : device.constants) CHECK(constant.source.size() > 8);
  }
}

TEST_CASE("At most four constants of a device were set by an end-to-end figure", "[runtime][sim]") {
  for (const std::string name : {"gb300", "gb200", "b300", "h200", "cpu-epyc"}) {
    const DeviceFile device = runtime::read_device(kDevices + name + ".toml");
    const auto calibrated =
        std::count_if(device.constants.begin(), device.constants.end(),
                      [](const auto& c) { return c.provenance == Provenance::kCalibrated; });
    CHECK(calibrated <= 4);
  }
}

TEST_CASE("GB200 differs from GB300 in its products and its memory alone", "[runtime][sim]") {
  const DeviceFile a = runtime::read_device(kDevices + "gb300.toml");
  const DeviceFile b = runtime::read_device(kDevices + "gb200.toml");
  for (const auto& constant : a.constants) {
    CAPTURE(constant.key);
    const bool differs = constant.key == "memory_bytes" || constant.key == "gemm_flops_per_us";
    CHECK((constant.value != b.constant(constant.key).value) == differs);
  }
  CHECK(a.params.gemm_flops_per_us == 1.90e9);
  CHECK(b.params.gemm_flops_per_us == 1.80e9);
  CHECK(a.constant("gap_us").provenance == Provenance::kCalibrated);
}

TEST_CASE("A device file that is written can be read again", "[runtime][sim]") {
  for (const std::string name : {"gb300", "cpu-epyc"}) {
    const DeviceFile device = runtime::read_device(kDevices + name + ".toml");
    const DeviceFile again = runtime::parse_device(runtime::to_toml(device), "again.toml");
    CHECK(again.is_roofline == device.is_roofline);
    REQUIRE(again.constants.size() == device.constants.size());
    for (const auto& constant : device.constants) {
      CHECK(again.constant(constant.key).value == constant.value);
      CHECK(again.constant(constant.key).source == constant.source);
    }
  }
}

TEST_CASE("A wrong device file is refused by file and key", "[runtime][sim]") {
  const std::string good = runtime::read_text(kDevices + "cpu-epyc.toml");
  check_refused(replaced(good, "step_us =", "stride_us ="),
                "d.toml: constants.stride_us is unknown; known are bytes_per_us, ");
  check_refused(replaced(good, "step_us = {", "# {"), "d.toml: constants.step_us is missing");
  check_refused(replaced(good, "value = 24e3", "value = 0"),
                "constants.bytes_per_us.value is 0; expected a number above 0");
  check_refused(replaced(good, "value = 24e3", "value = -1"), "is -1; expected a number from 0");
  check_refused(replaced(good, "value = 24e3", "value = \"fast\""),
                "constants.bytes_per_us.value is no number; expected a number");
  check_refused(replaced(good, "unit = \"B/us\"", "unit = \"GB/s\""),
                "constants.bytes_per_us.unit is \"GB/s\"; expected one of \"B/us\"");
  check_refused(replaced(good, "provenance = \"M\"", "provenance = \"Q\""),
                "provenance is \"Q\"; expected one of \"T\"");
  check_refused(replaced(good, "provenance = \"M\"", "origin = \"M\""),
                "constants.bytes_per_us.origin is unknown; known are provenance, source");
  check_refused(replaced(good, "version = 1", "version = 0"), "d.toml: version");
  check_refused(replaced(good, "version = 1", "# none"), "d.toml: version");
  check_refused(replaced(good, "form = \"roofline\"", "form = \"magic\""),
                "d.toml: form is \"magic\"; expected one of \"kernels\", \"roofline\"");
  check_refused(replaced(good, "name =", "title ="), "d.toml: title is unknown");
  check_refused(replaced(good, "form = \"roofline\"", "form = roofline"), "d.toml:7: ");
  CHECK_THROWS_WITH(runtime::read_device("/nowhere/x.toml"), Catch::Contains("/nowhere/x.toml"));
}
