// Built where nvcc is missing: the CUDA device is absent and says so.
#include <stdexcept>

#include "kernels/device.hpp"

namespace kernels {

std::unique_ptr<Device> make_cuda_device(int) {
  throw std::runtime_error("this build has no CUDA: nvcc was not found when it was configured");
}

int cuda_device_count() { return 0; }

}  // namespace kernels
