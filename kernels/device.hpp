// A device owns memory and runs work on streams in order. Three kinds exist: cpu, cuda, and (later)
// sim. Everything that touches a rank's memory goes through one stream of its device, so
// happens-before is stream order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace kernels {

class Device;

// Device memory. Invariant: data() stays valid and at one address until the buffer is destroyed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// A point in a stream's order. On the CPU a stream is synchronous, so an event has always happened.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool ready() const = 0;
  virtual void wait() const = 0;  // blocks the calling thread
};

// Work in order. Calls return at once on a GPU and after the work on a CPU.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void fill_zero(void* target, size_t bytes) = 0;
  virtual void copy(void* target, const void* source,
                    size_t bytes) = 0;  // may cross host and device
  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;  // later work starts after the event
  virtual void synchronize() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // Memory that reads as zero and costs no physical pages until touched (on the CPU). Throws
  // std::bad_alloc.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;

 private:
  friend class Buffer;
  virtual void release(void* data, size_t bytes) = 0;
};

// CPU device: anonymous mmap, synchronous stream.
std::unique_ptr<Device> make_cpu_device();

// CUDA device `ordinal`; throws std::runtime_error where the build has no CUDA or the machine no
// such GPU.
std::unique_ptr<Device> make_cuda_device(int ordinal);
int cuda_device_count();  // 0 without CUDA, a driver or a GPU

}  // namespace kernels
