#include "runtime/train/parameter_store.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "kernels/base/dtype.hpp"
#include "kernels/base/verify.hpp"
#include "kernels/train/optimizer.hpp"
#include "runtime/mxfp4.hpp"

namespace runtime {

namespace {

bool ends_with(const std::string& name, const char* end) { return name.ends_with(end); }

}  // namespace

ParameterStore::ParameterStore(const ModelConfig& config, bool quantised)
    : layout_(config),
      quantised_(quantised),
      config_(config),
      masters_(layout_.size()),
      values_(layout_.size()) {
  if (!quantised) return;
  codes_.resize(layout_.size() / 2 + 1);
  scales_.resize(layout_.size() / kMxfp4Group + 1);
  for (const Parameter& parameter : layout_.all()) {
    if (parameter.precision != Precision::kExpert) continue;
    if (parameter.shape[1] % kMxfp4Group != 0) {
      throw std::runtime_error("tensor " + parameter.name +
                               ": MXFP4 needs an input width that is a multiple of 32, not " +
                               std::to_string(parameter.shape[1]));
    }
  }
}

void ParameterStore::initialise(uint64_t seed, ParameterStart start) {
  initialise_parameters(config_, layout_, start, seed, masters_.data());
}

void ParameterStore::load(const WeightSource& weights) {
  for (const Parameter& p : layout_.all()) {
    std::vector<float> read;
    if (ends_with(p.name, "A_log")) {
      read = weights.padded_floats(p.name, p.count);
    } else if (p.precision == Precision::kExpert) {
      const std::string name = p.name.substr(0, p.name.size() - std::strlen(".weight"));
      const auto view = weights.matrix(name, p.shape[0], p.shape[1]);
      read = view.dtype == kernels::DType::kMXFP4 ? decode_mxfp4(view)
                                                  : weights.floats(p.name, p.shape);
    } else {
      read = weights.floats(p.name, p.shape);
    }
    std::copy(read.begin(), read.end(), masters_.begin() + static_cast<long>(p.offset));
  }
}

void ParameterStore::refresh(kernels::cpu::ThreadPool& pool) {
  pool.parallel_for(layout_.all().size(), [&](size_t i, unsigned) {
    const Parameter& p = layout_.all()[i];
    if (quantised_ && p.precision == Precision::kExpert) return quantise(p);
    kernels::round_parameters(masters_.data() + p.offset, values_.data() + p.offset, p.count,
                              p.precision != Precision::kFloat);
  });
}

void ParameterStore::refresh_experts(kernels::cpu::ThreadPool& pool) {
  if (!quantised_) return;
  pool.parallel_for(layout_.all().size(), [&](size_t i, unsigned) {
    if (layout_.all()[i].precision == Precision::kExpert) quantise(layout_.all()[i]);
  });
}

// A group's codes stand at its parameter's offset / 2 and its scale at offset / 32. Widths are
// multiples of 32, but not every parameter's offset is: so both are rounded up.
void ParameterStore::quantise(const Parameter& p) {
  uint8_t* codes = codes_.data() + (p.offset + 1) / 2;
  uint8_t* scales = scales_.data() + (p.offset + kMxfp4Group - 1) / kMxfp4Group;
  const float* from = masters_.data() + p.offset;
  for (size_t group = 0; group < p.count / kMxfp4Group; ++group) {
    scales[group] =
        encode_mxfp4(std::span<const float, kMxfp4Group>(from + group * kMxfp4Group, kMxfp4Group),
                     std::span<uint8_t, 16>(codes + group * 16, 16));
  }
  kernels::MatrixView view;
  view.dtype = kernels::DType::kMXFP4;
  view.data = codes;
  view.scale = scales;
  view.n = p.shape[0];
  view.k = p.shape[1];
  const std::vector<float> decoded = decode_mxfp4(view);
  std::copy(decoded.begin(), decoded.end(), values_.begin() + static_cast<long>(p.offset));
}

kernels::MatrixView ParameterStore::matrix(const std::string& name, size_t n, size_t k) const {
  const Parameter& p = layout_.at(name + ".weight");
  if (!quantised_ || p.precision != Precision::kExpert) return table(p.name, n, k);
  VERIFY(p.shape == (std::vector<uint64_t>{n, k}));
  kernels::MatrixView view;
  view.dtype = kernels::DType::kMXFP4;
  view.data = codes_.data() + (p.offset + 1) / 2;
  view.scale = scales_.data() + (p.offset + kMxfp4Group - 1) / kMxfp4Group;
  view.n = n;
  view.k = k;
  return view;
}

kernels::MatrixView ParameterStore::table(const std::string& name, size_t n, size_t k) const {
  const Parameter& p = layout_.at(name);
  VERIFY(p.shape == (std::vector<uint64_t>{n, k}));
  kernels::MatrixView view;
  view.dtype = kernels::DType::kF32;
  view.data = values_.data() + p.offset;
  view.n = n;
  view.k = k;
  view.stride_n = k;
  return view;
}

std::vector<float> ParameterStore::floats(const std::string& name,
                                          std::vector<uint64_t> shape) const {
  const Parameter& p = layout_.at(name);
  VERIFY(p.shape == shape);
  const auto first = values_.begin() + static_cast<long>(p.offset);
  return {first, first + static_cast<long>(p.count)};
}

std::vector<float> ParameterStore::padded_floats(const std::string& name, size_t count) const {
  return floats(name, {count});
}

void ParameterStore::write(const std::string& prefix, SafeTensorsWriter& writer) const {
  for (const Parameter& p : layout_.all()) {
    if (quantised_ && p.precision == Precision::kExpert) {
      write_packed(prefix, p, writer);
      continue;
    }
    const float* from = values_.data() + p.offset;
    const size_t count = p.count;
    if (p.precision != Precision::kFloat) {
      writer.add(prefix + p.name, "BF16", p.shape, [=](std::span<std::byte> data) {
        for (size_t i = 0; i < count; ++i) {
          const uint16_t half = kernels::float_to_bf16(from[i]);
          std::memcpy(data.data() + i * sizeof half, &half, sizeof half);
        }
      });
      continue;
    }
    // Published files pad A_log of K3 to 128 heads.
    std::vector<uint64_t> shape = p.shape;
    if (ends_with(p.name, "A_log")) shape = {std::max<uint64_t>(128, shape[0])};
    writer.add(prefix + p.name, "F32", shape, [=](std::span<std::byte> data) {
      std::fill(data.begin(), data.end(), std::byte{0});
      std::memcpy(data.data(), from, count * sizeof(float));
    });
  }
}

void ParameterStore::write_packed(const std::string& prefix, const Parameter& p,
                                  SafeTensorsWriter& writer) const {
  const std::string name = prefix + p.name.substr(0, p.name.size() - std::strlen(".weight"));
  const uint8_t* codes = codes_.data() + (p.offset + 1) / 2;
  const uint8_t* scales = scales_.data() + (p.offset + kMxfp4Group - 1) / kMxfp4Group;
  const auto copy = [](const uint8_t* from) {
    return [from](std::span<std::byte> data) { std::memcpy(data.data(), from, data.size()); };
  };
  writer.add(name + ".weight_packed", "U8", {p.shape[0], p.shape[1] / 2}, copy(codes));
  writer.add(name + ".weight_scale", "U8", {p.shape[0], p.shape[1] / kMxfp4Group}, copy(scales));
}

}  // namespace runtime
