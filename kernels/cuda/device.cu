// The CUDA device: memory, streams and events of one GPU as RAII.
#include <memory>
#include <new>
#include <string>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/device.hpp"

namespace kernels {
namespace cuda {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal), name_("cuda:" + std::to_string(ordinal)) {
    CUDA_CHECK(cudaSetDevice(ordinal));
  }
  std::string_view name() const override { return name_; }
  Buffer allocate(size_t bytes) override {
    CUDA_CHECK(cudaSetDevice(ordinal_));
    void* data = nullptr;
    if (cudaMalloc(&data, bytes) != cudaSuccess) throw std::bad_alloc();
    CUDA_CHECK(cudaMemset(data, 0, bytes));
    return Buffer(this, data, bytes);
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CudaStream>(ordinal_); }

 private:
  void release(void* data, size_t) override { cudaFree(data); }

  int ordinal_;
  std::string name_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  return std::make_unique<cuda::CudaDevice>(ordinal);
}

int cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace kernels
