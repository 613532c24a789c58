// Measured runs of prefill and decode servers apart, as a table of config/figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sim/parallel_layout.hpp"

namespace runtime {

struct PdPoint {
  std::string sweep;
  ParallelLayout prefill, decode;
  uint32_t prefill_servers = 0, decode_servers = 0, devices = 0;
  double user_tps = 0, device_tps = 0;

  // Requests of one decode server that the rates imply, by Little's law, where prompts are
  // `prompt_over_answer` times as long as answers.
  double batch(double prompt_over_answer) const {
    return device_tps * devices / (1 + prompt_over_answer) / user_tps / decode_servers;
  }
};
// Throws std::runtime_error naming file and line.
std::vector<PdPoint> read_pd_points(const std::string& path);

}  // namespace runtime
