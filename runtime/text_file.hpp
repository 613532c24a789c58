// A whole file as text.
#pragma once

#include <string>

namespace runtime {

std::string read_text(const std::string& path);  // throws std::runtime_error naming the path

}  // namespace runtime
