// Why a request ends early, in the words that every layer uses for it.
#pragma once

#include "kernels/base/result.hpp"

namespace runtime {

inline kernels::Error request_aborted() {
  return {kernels::ErrorCode::kCancelled, "the request was aborted", {}};
}

inline kernels::Error shutting_down() {
  return {kernels::ErrorCode::kUnavailable, "the server is shutting down", {}};
}

}  // namespace runtime
