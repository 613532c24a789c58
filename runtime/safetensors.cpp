#include "runtime/safetensors.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

// Bytes of one element of every dtype the format knows; 0 for an unknown name.
size_t element_bytes(std::string_view dtype) {
  struct Entry {
    std::string_view name;
    size_t bytes;
  };
  static constexpr Entry kKnown[] = {{"F64", 8},  {"F32", 4},     {"F16", 2},     {"BF16", 2},
                                     {"I64", 8},  {"U64", 8},     {"I32", 4},     {"U32", 4},
                                     {"I16", 2},  {"U16", 2},     {"I8", 1},      {"U8", 1},
                                     {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  for (const Entry& entry : kKnown) {
    if (entry.name == dtype) return entry.bytes;
  }
  return 0;
}

std::optional<uint64_t> as_unsigned(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<uint64_t>(value.get_int64());
  return std::nullopt;
}

std::optional<std::vector<uint64_t>> as_unsigned_list(const json::value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<uint64_t> out;
  for (const json::value& element : value->get_array()) {
    const auto number = as_unsigned(element);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

// Product of the shape and the element size; empty on overflow.
std::optional<uint64_t> byte_count(std::span<const uint64_t> shape, size_t element) {
  uint64_t bytes = element;
  for (const uint64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = (value << 8) | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

}  // namespace

uint64_t StoredTensor::elements() const {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

std::optional<kernels::DType> StoredTensor::float_type() const {
  if (dtype == "F32") return kernels::DType::kF32;
  if (dtype == "F16") return kernels::DType::kF16;
  if (dtype == "BF16") return kernels::DType::kBF16;
  return std::nullopt;
}

std::vector<float> StoredTensor::floats(size_t count) const {
  const auto type = float_type();
  VERIFY(type.has_value());
  const size_t element = kernels::dtype_bytes(*type);
  VERIFY(count * element <= data.size());
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* at = data.data() + i * element;
    if (*type == kernels::DType::kF32) {
      std::memcpy(&out[i], at, sizeof(float));
      continue;
    }
    uint16_t half = 0;
    std::memcpy(&half, at, sizeof half);
    out[i] =
        *type == kernels::DType::kBF16 ? kernels::bf16_to_float(half) : kernels::f16_to_float(half);
  }
  return out;
}

std::string shape_text(std::span<const uint64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

SafeTensorsFile::SafeTensorsFile(const std::string& path) : path_(path), file_(path) {
  const auto bytes = file_.bytes();
  if (bytes.size() < 8) {
    throw std::runtime_error(path_ + ": is " + std::to_string(bytes.size()) +
                             " bytes long; a safetensors file starts with an 8-byte header length");
  }
  const uint64_t header = little_endian_u64(bytes);
  if (header > kMaxHeaderBytes || header > bytes.size() - 8) {
    throw std::runtime_error(path_ + ": header length is " + std::to_string(header) +
                             " bytes, but only " + std::to_string(bytes.size() - 8) +
                             " bytes follow it");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header);
  read_header(text, bytes.subspan(8 + header));
  check_overlaps();
}

void SafeTensorsFile::read_header(std::string_view text, std::span<const std::byte> data) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error)
    throw std::runtime_error(path_ + ": the header is not valid JSON (" + error.message() + ")");
  if (!value.is_object()) throw std::runtime_error(path_ + ": the header must be one JSON object");
  for (const auto& [key, entry] : value.get_object()) {
    if (key == "__metadata__") continue;
    const std::string name(key);
    const auto fail = [&](const std::string& problem) {
      throw std::runtime_error(path_ + ": tensor " + name + ": " + problem);
    };
    if (!entry.is_object()) fail("its header entry must be an object");
    const json::object& fields = entry.get_object();
    StoredTensor tensor;
    const json::value* dtype = fields.if_contains("dtype");
    if (dtype == nullptr || !dtype->is_string()) fail("dtype is missing or not a string");
    tensor.dtype = std::string(dtype->get_string());
    const size_t element = element_bytes(tensor.dtype);
    if (element == 0) fail("unknown dtype \"" + tensor.dtype + "\"");
    const auto shape = as_unsigned_list(fields.if_contains("shape"));
    if (!shape) fail("shape is missing or not a list of whole numbers");
    tensor.shape = *shape;
    const auto offsets = as_unsigned_list(fields.if_contains("data_offsets"));
    if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
      fail("data_offsets is missing or not two ascending whole numbers");
    }
    const uint64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (end > data.size()) {
      fail("ends at byte " + std::to_string(end) + " of the data, but the file holds only " +
           std::to_string(data.size()) + " bytes of data; is it truncated?");
    }
    const auto bytes = byte_count(tensor.shape, element);
    if (!bytes || *bytes != end - begin) {
      fail("shape " + shape_text(tensor.shape) + " of " + tensor.dtype + " does not take the " +
           std::to_string(end - begin) + " bytes its data_offsets give it");
    }
    tensor.data = data.subspan(begin, end - begin);
    tensors_.emplace(name, std::move(tensor));
  }
}

void SafeTensorsFile::check_overlaps() const {
  std::vector<const decltype(tensors_)::value_type*> order;
  for (const auto& entry : tensors_) {
    if (!entry.second.data.empty()) order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return a->second.data.data() < b->second.data.data(); });
  for (size_t i = 1; i < order.size(); ++i) {
    const auto& before = order[i - 1]->second.data;
    if (before.data() + before.size() > order[i]->second.data.data()) {
      throw std::runtime_error(path_ + ": tensors " + order[i - 1]->first + " and " +
                               order[i]->first + " overlap in the file");
    }
  }
}

const StoredTensor* SafeTensorsFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace runtime
