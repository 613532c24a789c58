// A failing CUDA runtime call is a broken environment: it throws with the call and CUDA's own
// words.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace kernels::cuda {

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

}  // namespace kernels::cuda

#define CUDA_CHECK(call) ::kernels::cuda::check((call), #call)
