// Ops whose calls are spans of the trace, with their shapes.
#pragma once

#include <memory>

#include "kernels/ops.hpp"

namespace kernels {

// Owns `inner`. A call costs one relaxed load more while the trace is off.
std::unique_ptr<Ops> make_traced_ops(std::unique_ptr<Ops> inner);

}  // namespace kernels
