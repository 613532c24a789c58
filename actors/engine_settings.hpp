// Which settings of the engine can work, and what follows from them. Everything here throws
// std::invalid_argument whose message begins with the setting's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/engine_config.hpp"

namespace actors {

// All that can be known without the model.
void check_config(const runtime::EngineConfig& config);

// The part for states of "split:RATIO"; nothing for "unified".
std::optional<double> split_share(const std::string& memory);

// The longest sequence that the model and the memory (`positions_max`) allow, or the one asked for
// if they do.
uint32_t context_length(const runtime::EngineConfig& config, uint32_t model_max,
                        uint32_t positions_max);

}  // namespace actors
