// The text of a TOML file as a table. Includes toml++, which is heavy: for .cpp files alone.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace runtime {

// Throws std::runtime_error "PATH:LINE: ..." for what is not TOML.
toml::table parse_toml(std::string_view text, const std::string& path);

}  // namespace runtime
