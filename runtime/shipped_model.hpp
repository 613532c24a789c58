// The model that comes with Sluice.
#pragma once

#include <string>

namespace runtime {

// config/models/tiny-k3 beside the program or in a directory above it; empty: there is none.
std::string shipped_model();

}  // namespace runtime
