// What comes with Sluice: the folder config/, beside the program or in a directory above it.
#pragma once

#include <string>

namespace runtime {

// Both are empty where there is none.
std::string shipped_config();
std::string shipped_model();  // config/models/tiny-k3

}  // namespace runtime
