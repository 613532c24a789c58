// CPU device: memory from anonymous mmap, streams that finish before they return.
#include "kernels/device.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "kernels/base/verify.hpp"

namespace kernels {
namespace {

class CpuEvent final : public Event {
 public:
  bool ready() const override { return true; }
  void wait() const override {}
};

class CpuStream final : public Stream {
 public:
  void fill_zero(void* target, size_t bytes) override {
    if (bytes != 0) std::memset(target, 0, bytes);
  }
  void copy(void* target, const void* source, size_t bytes) override {
    if (bytes != 0) std::memmove(target, source, bytes);
  }
  std::unique_ptr<Event> record() override { return std::make_unique<CpuEvent>(); }
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}
};

class CpuDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }

  Buffer allocate(size_t bytes) override {
    if (bytes == 0) return Buffer(this, nullptr, 0);
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    ::madvise(data, bytes, MADV_HUGEPAGE);  // advice: streaming reads gain, a refusal costs nothing
    return Buffer(this, data, bytes);
  }

  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CpuStream>(); }

 private:
  void release(void* data, size_t bytes) override {
    const int result = ::munmap(data, bytes);
    VERIFY(result == 0);
  }
};

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_, bytes_);
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace kernels
