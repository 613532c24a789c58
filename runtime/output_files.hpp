// Files and directories that commands write. Both throw std::runtime_error naming the path.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

void make_directory(const std::string& path);  // with its parents; fine where it exists
void write_file(const std::string& path, std::string_view bytes);  // replaces what was there

}  // namespace runtime
