#include "runtime/weights.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "memory/checksum.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

constexpr size_t kGroup = 32;  // MXFP4: columns that share a scale byte

// tensor name -> shard file name
std::map<std::string, std::string> read_index(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  boost::system::error_code error;
  const json::value value = json::parse(std::move(text).str(), error);
  if (error) throw std::runtime_error(path + ": is not valid JSON (" + error.message() + ")");
  const json::value* map =
      value.is_object() ? value.get_object().if_contains("weight_map") : nullptr;
  if (map == nullptr || !map->is_object())
    throw std::runtime_error(path + ": weight_map is missing or not an object");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : map->get_object()) {
    const std::string shard = file.is_string() ? std::string(file.get_string()) : std::string();
    if (shard.empty() || shard.find('/') != std::string::npos) {
      throw std::runtime_error(path + ": weight_map." + std::string(name) +
                               " must be the name of a file beside the index");
    }
    out.emplace(name, shard);
  }
  return out;
}

void check_shape(const std::string& name, const StoredTensor& tensor,
                 const std::vector<uint64_t>& expected) {
  if (tensor.shape == expected) return;
  throw std::runtime_error("tensor " + name + ": expected shape " + shape_text(expected) +
                           ", found " + shape_text(tensor.shape));
}

void check_dtype(const std::string& name, const StoredTensor& tensor, std::string_view expected) {
  if (tensor.dtype == expected) return;
  throw std::runtime_error("tensor " + name + ": expected dtype " + std::string(expected) +
                           ", found " + tensor.dtype);
}

kernels::DType check_float(const std::string& name, const StoredTensor& tensor) {
  const auto dtype = tensor.float_type();
  if (!dtype)
    throw std::runtime_error("tensor " + name + ": expected dtype BF16, F16 or F32, found " +
                             tensor.dtype);
  return *dtype;
}

}  // namespace

WeightsFile WeightsFile::load(const std::string& directory) {
  WeightsFile out;
  out.directory_ = directory;
  const std::string index = directory + "/model.safetensors.index.json";
  const std::string single = directory + "/model.safetensors";
  if (!std::filesystem::exists(index)) {
    if (!std::filesystem::exists(single)) {
      throw std::runtime_error(
          directory + ": holds neither model.safetensors nor model.safetensors.index.json");
    }
    out.add_shard(single);
  } else {
    const auto weight_map = read_index(index);
    std::map<std::string, const SafeTensorsFile*> opened;
    for (const auto& [name, shard] : weight_map) {
      if (opened.count(shard) != 0) continue;
      const std::string path = directory + "/" + shard;
      if (!std::filesystem::exists(path)) {
        throw std::runtime_error(index + ": names the shard " + shard + " (for tensor " + name +
                                 "), which is missing");
      }
      out.add_shard(path);
      opened[shard] = out.shards_.back().get();
    }
    for (const auto& [name, shard] : weight_map) {
      if (opened[shard]->find(name) == nullptr) {
        throw std::runtime_error(index + ": places tensor " + name + " in " + shard +
                                 ", which does not hold it");
      }
    }
  }
  const std::string prefix = "language_model.";
  const auto first = out.tensors_.lower_bound(prefix);
  if (first != out.tensors_.end() && first->first.starts_with(prefix)) out.prefix_ = prefix;
  return out;
}

void WeightsFile::add_shard(const std::string& path) {
  shards_.push_back(std::make_unique<SafeTensorsFile>(path));
  for (const auto& [name, tensor] : shards_.back()->tensors()) {
    if (!tensors_.emplace(name, &tensor).second) {
      throw std::runtime_error(path + ": tensor " + name + " is also in another shard");
    }
  }
}

uint64_t WeightsFile::digest() const {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors_) {
    const std::string head = name + ' ' + tensor->dtype + ' ' + shape_text(tensor->shape);
    sum = memory::checksum(std::as_bytes(std::span(head)), sum);
    sum = memory::checksum(tensor->data, sum);
  }
  return sum;
}

const StoredTensor* WeightsFile::find(std::string_view name) const {
  const auto it = tensors_.find(prefix_ + std::string(name));
  return it == tensors_.end() ? nullptr : it->second;
}

bool WeightsFile::contains(std::string_view name) const { return find(name) != nullptr; }

const StoredTensor& WeightsFile::require(const std::string& name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr)
    throw std::runtime_error(directory_ + ": tensor " + full_name(name) + " is missing");
  return *tensor;
}

const std::byte* WeightsFile::aligned(const StoredTensor& tensor, size_t alignment) const {
  if (reinterpret_cast<uintptr_t>(tensor.data.data()) % alignment == 0) return tensor.data.data();
  return aligned_copies_.emplace_back(tensor.data.begin(), tensor.data.end()).data();
}

kernels::MatrixView WeightsFile::matrix(const std::string& name, size_t n, size_t k) const {
  if (contains(name + ".weight_packed")) return mxfp4(name, n, k);
  return table(name + ".weight", n, k);
}

kernels::MatrixView WeightsFile::table(const std::string& name, size_t n, size_t k) const {
  const StoredTensor& tensor = require(name);
  check_shape(full_name(name), tensor, {n, k});
  kernels::MatrixView view;
  view.dtype = check_float(full_name(name), tensor);
  view.data = aligned(tensor, kernels::dtype_bytes(view.dtype));
  view.n = n;
  view.k = k;
  view.stride_n = k;
  return view;
}

kernels::MatrixView WeightsFile::mxfp4(const std::string& name, size_t n, size_t k) const {
  const std::string packed_name = name + ".weight_packed", scale_name = name + ".weight_scale";
  if (k % kGroup != 0) {
    throw std::runtime_error("tensor " + full_name(packed_name) +
                             ": MXFP4 needs an input width that is a multiple of 32, not " +
                             std::to_string(k));
  }
  const StoredTensor& packed = require(packed_name);
  const StoredTensor& scale = require(scale_name);
  check_dtype(full_name(packed_name), packed, "U8");
  check_dtype(full_name(scale_name), scale, "U8");
  check_shape(full_name(packed_name), packed, {n, k / 2});
  check_shape(full_name(scale_name), scale, {n, k / kGroup});
  const auto* bytes = reinterpret_cast<const uint8_t*>(scale.data.data());
  if (const void* bad = std::memchr(bytes, 0xff, scale.data.size())) {  // E8M0: 255 is NaN
    const size_t at = static_cast<size_t>(static_cast<const uint8_t*>(bad) - bytes);
    throw std::runtime_error("tensor " + full_name(scale_name) + ": scale [" +
                             std::to_string(at / (k / kGroup)) + ", " +
                             std::to_string(at % (k / kGroup)) + "] is 255, which means NaN");
  }
  kernels::MatrixView view;
  view.dtype = kernels::DType::kMXFP4;
  view.data = packed.data.data();
  view.scale = bytes;
  view.n = n;
  view.k = k;
  return view;
}

std::vector<float> WeightsFile::convert(const std::string& name, const StoredTensor& tensor,
                                        size_t count) const {
  check_float(full_name(name), tensor);
  return tensor.floats(count);
}

std::vector<float> WeightsFile::floats(const std::string& name, std::vector<uint64_t> shape) const {
  const StoredTensor& tensor = require(name);
  check_shape(full_name(name), tensor, shape);
  return convert(name, tensor, tensor.elements());
}

std::vector<float> WeightsFile::padded_floats(const std::string& name, size_t count) const {
  const StoredTensor& tensor = require(name);
  const auto axes = std::count_if(tensor.shape.begin(), tensor.shape.end(),
                                  [](uint64_t extent) { return extent != 1; });
  if (axes > 1 || tensor.elements() < count) {
    throw std::runtime_error("tensor " + full_name(name) + ": expected one axis of at least " +
                             std::to_string(count) + " values, found shape " +
                             shape_text(tensor.shape));
  }
  return convert(name, tensor, count);
}

}  // namespace runtime
