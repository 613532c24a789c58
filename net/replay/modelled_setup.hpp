// A modelled server ready to be played on: the device and the model of a scenario priced, its
// memory divided, scheduler and cache configured for it.
#pragma once

#include <memory>
#include <string>

#include "net/replay/scenario.hpp"
#include "runtime/sim/step_model.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace net {

struct ModelledSetup {
  runtime::DeviceFile device;
  std::unique_ptr<runtime::StepModel> model;
  std::unique_ptr<runtime::Speculation> speculation;  // none where nothing is drafted
  runtime::VirtualServerConfig server;
};

// Throws std::runtime_error or std::invalid_argument naming the setting.
// `config_directory`: where names of devices and models are looked up (DIR/devices/NAME.toml,
// DIR/geometries/NAME.json).
ModelledSetup make_modelled_setup(const ModelledServer& server,
                                  const std::string& config_directory);

}  // namespace net
