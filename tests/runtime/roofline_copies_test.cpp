#include <catch2/catch.hpp>
#include <string>

#include "runtime/sim/step_model_clock.hpp"

TEST_CASE("A roofline device copies states at its memory rate", "[sim]") {
  const std::string config = std::string(SLUICE_SOURCE_DIR) + "/config/";
  const auto device = runtime::read_device(config + "devices/cpu-epyc.toml");
  const runtime::StepModel model(device, runtime::ModelGeometry::load(config + "models/tiny-k3"),
                                 {}, {});
  runtime::StepModelClock clock(model, 64);
  runtime::DeviceWork work;
  work.copies.states = 3;
  const double us = 2 * 3 * model.memory().state_bytes / device.params.roofline.bytes_per_us;
  const runtime::DeviceTimes times = clock.start(work, 1000);
  CHECK(static_cast<double>(times.done_ns) == Approx(1000 + 1000 * us).margin(1));
  work.copies = {};
  work.copies.states_in = 2;  // from host memory, behind the others
  CHECK(clock.start(work, times.done_ns).done_ns > times.done_ns);
}
