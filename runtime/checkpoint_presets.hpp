// The geometries `sluice-train init` can write, as the config.json of each.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>
#include <vector>

namespace runtime {

std::vector<std::string_view> preset_names();

// Throws std::runtime_error for an unknown name.
boost::json::object preset_config(std::string_view name);

}  // namespace runtime
