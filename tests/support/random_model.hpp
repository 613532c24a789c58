// A directory with the seeded random model of a preset, written once per program.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/checkpoint_writer.hpp"
#include "tests/support/temporary_directory.hpp"

namespace support {

inline const std::string& random_model(const std::string& preset) {
  static std::map<std::string, std::unique_ptr<TemporaryDirectory>> written;
  auto& directory = written[preset];
  if (directory == nullptr) {
    directory = std::make_unique<TemporaryDirectory>();
    runtime::CheckpointOptions options;
    options.preset = preset;
    options.directory = directory->path();
    runtime::write_checkpoint(options);
  }
  return directory->path();
}

}  // namespace support
