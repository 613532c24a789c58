#include "runtime/packed_weights.hpp"

#include <cstring>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

using kernels::DType;
using kernels::MatrixView;

namespace {

float element(const MatrixView& view, size_t index) {
  switch (view.dtype) {
    case DType::kF32:
      return static_cast<const float*>(view.data)[index];
    case DType::kBF16:
      return kernels::bf16_to_float(static_cast<const uint16_t*>(view.data)[index]);
    case DType::kF16:
      return kernels::f16_to_float(static_cast<const uint16_t*>(view.data)[index]);
    case DType::kU8:
    case DType::kMXFP4:
      break;
  }
  VERIFY(view.dtype == DType::kF32);
  return 0;
}

}  // namespace

kernels::MatrixPtr PackedWeights::pack(const MatrixView& view) {
  auto packed = ops_.pack(view);
  bytes_ += packed->bytes();
  return packed;
}

kernels::MatrixPtr PackedWeights::matrix(const std::string& name, size_t n, size_t k) {
  return pack(source_.matrix(name, n, k));
}

kernels::MatrixPtr PackedWeights::stack(std::span<const Part> parts, size_t k) {
  std::vector<MatrixView> views;
  size_t n = 0;
  bool same = true;
  for (const Part& part : parts) {
    views.push_back(source_.table(part.name + ".weight", part.n, k));
    same = same && views.back().dtype == views.front().dtype;
    n += part.n;
  }
  MatrixView all;
  all.dtype = same ? views.front().dtype : DType::kF32;
  all.n = n;
  all.k = k;
  all.stride_n = k;
  const size_t size = kernels::dtype_bytes(all.dtype);
  std::vector<std::byte> joined(n * k * size);
  std::byte* at = joined.data();
  for (const MatrixView& view : views) {
    const size_t count = view.n * k;
    if (same) {
      std::memcpy(at, view.data, count * size);
    } else {
      for (size_t i = 0; i < count; ++i) {
        const float value = element(view, i);
        std::memcpy(at + i * sizeof value, &value, sizeof value);
      }
    }
    at += count * size;
  }
  all.data = joined.data();
  return pack(all);
}

std::vector<float> PackedWeights::counted(std::vector<float> values) {
  bytes_ += values.size() * sizeof(float);
  return values;
}

std::vector<float> PackedWeights::vector(const std::string& name, size_t count) {
  return floats(name, {count});
}

std::vector<float> PackedWeights::floats(const std::string& name, std::vector<uint64_t> shape) {
  return counted(source_.floats(name, std::move(shape)));
}

std::vector<float> PackedWeights::padded(const std::string& name, size_t count) {
  return counted(source_.padded_floats(name, count));
}

}  // namespace runtime
