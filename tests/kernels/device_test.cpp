#include "kernels/device.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

TEST_CASE(
    "CPU device memory reads as zero, keeps its address when moved, and costs nothing until "
    "touched",
    "[kernels]") {
  const auto device = kernels::make_cpu_device();
  CHECK(device->name() == "cpu");
  kernels::Buffer small = device->allocate(4096);
  CHECK(std::all_of(small.data(), small.data() + 4096,
                    [](std::byte b) { return b == std::byte{0}; }));
  std::byte* address = small.data();
  kernels::Buffer moved = std::move(small);
  CHECK(moved.data() == address);
  CHECK(moved.bytes() == 4096);
  kernels::Buffer huge = device->allocate(size_t{1} << 36);  // 64 GiB: more than the machine has
  huge.data()[size_t{1} << 35] = std::byte{7};
  CHECK(huge.data()[size_t{1} << 35] == std::byte{7});
}

TEST_CASE("A CPU stream has finished its work when it returns", "[kernels]") {
  const auto device = kernels::make_cpu_device();
  const auto stream = device->make_stream();
  kernels::Buffer a = device->allocate(64), b = device->allocate(64);
  std::memset(a.data(), 5, 64);
  stream->copy(b.data(), a.data(), 64);
  stream->fill_zero(a.data(), 32);
  const auto event = stream->record();
  CHECK(event->ready());
  CHECK(b.data()[63] == std::byte{5});
  CHECK(a.data()[31] == std::byte{0});
  CHECK(a.data()[32] == std::byte{5});
}
