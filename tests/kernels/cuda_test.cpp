// The CUDA device against the CPU, bit for bit. Without a GPU these tests say so and pass.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/ops.hpp"
#ifdef SLUICE_HAS_CUDA
#include "kernels/cuda/rms_norm.hpp"
#endif

namespace {

bool gpu_present() {
  if (kernels::cuda_device_count() > 0) return true;
  WARN("no CUDA device here: skipped");
  return false;
}

}  // namespace

TEST_CASE("A build or machine without CUDA refuses a CUDA device with the reason",
          "[kernels][cuda]") {
  if (kernels::cuda_device_count() > 0) return;
  CHECK_THROWS_AS(kernels::make_cuda_device(0), std::runtime_error);
}

TEST_CASE("CUDA memory starts at zero and a stream copies in order", "[kernels][cuda]") {
  if (!gpu_present()) return;
  const auto device = kernels::make_cuda_device(0);
  const auto stream = device->make_stream();
  const auto buffer = device->allocate(4096);
  std::vector<unsigned char> host(4096, 0xff), back(4096, 0xff);
  stream->copy(back.data(), buffer.data(), back.size());
  stream->synchronize();
  CHECK(back == std::vector<unsigned char>(4096, 0));
  stream->copy(buffer.data(), host.data(), host.size());
  stream->fill_zero(buffer.data(), 2048);
  stream->copy(back.data(), buffer.data(), back.size());
  const auto event = stream->record();
  event->wait();
  CHECK(event->ready());
  std::fill(host.begin(), host.begin() + 2048, static_cast<unsigned char>(0));
  CHECK(back == host);
}

#ifdef SLUICE_HAS_CUDA
TEST_CASE("CUDA RMSNorm equals the CPU's bit for bit", "[kernels][cuda]") {
  if (!gpu_present()) return;
  const auto device = kernels::make_cuda_device(0);
  const auto stream = device->make_stream();
  const auto ops = kernels::make_cpu_ops(1);
  const uint32_t seed = 20261130;
  CAPTURE(seed);
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  for (const size_t width : {1, 15, 16, 17, 256, 7168}) {
    CAPTURE(width);
    const size_t rows = 37;
    std::vector<float> x(rows * width), weight(width), expected(rows * width), found(rows * width);
    for (auto& value : x) value = normal(rng);
    for (auto& value : weight) value = normal(rng);
    ops->rms_norm({x.data(), width}, weight.data(), 1e-5f, {expected.data(), width}, rows, width);
    const auto device_x = device->allocate(x.size() * 4),
               device_weight = device->allocate(width * 4);
    stream->copy(device_x.data(), x.data(), x.size() * 4);
    stream->copy(device_weight.data(), weight.data(), width * 4);
    auto* const values = reinterpret_cast<float*>(device_x.data());
    kernels::cuda::rms_norm(*stream, values, reinterpret_cast<const float*>(device_weight.data()),
                            1e-5f, values, rows, width);
    stream->copy(found.data(), values, found.size() * 4);
    stream->synchronize();
    CHECK(std::memcmp(found.data(), expected.data(), found.size() * 4) == 0);
  }
}
#endif
