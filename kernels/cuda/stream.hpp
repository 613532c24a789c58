// A CUDA stream and its events as kernels::Stream; launchers take the handle from here.
#pragma once

#include <memory>

#include "kernels/base/verify.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/device.hpp"

namespace kernels::cuda {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  bool ready() const override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    CUDA_CHECK(status);
    return true;
  }
  void wait() const override { CUDA_CHECK(cudaEventSynchronize(event_)); }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(int ordinal) {
    CUDA_CHECK(cudaSetDevice(ordinal));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaStream() override { cudaStreamDestroy(stream_); }
  void fill_zero(void* target, size_t bytes) override {
    CUDA_CHECK(cudaMemsetAsync(target, 0, bytes, stream_));
  }
  void copy(void* target, const void* source, size_t bytes) override {
    CUDA_CHECK(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_));
  }
  std::unique_ptr<Event> record() override { return std::make_unique<CudaEvent>(stream_); }
  void wait(const Event& event) override {
    const auto* other = dynamic_cast<const CudaEvent*>(&event);
    VERIFY(other !=
           nullptr);  // an event of another kind of device cannot be waited for on this stream
    CUDA_CHECK(cudaStreamWaitEvent(stream_, other->handle(), 0));
  }
  void synchronize() override { CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  cudaStream_t handle() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// The handle behind a stream that must be a CUDA stream.
inline cudaStream_t stream_handle(Stream& stream) {
  auto* cuda = dynamic_cast<CudaStream*>(&stream);
  VERIFY(cuda != nullptr);
  return cuda->handle();
}

}  // namespace kernels::cuda
