// Reads one .safetensors file: u64 little-endian header length, a JSON header (name -> dtype,
// shape, data_offsets), raw data. Invariant: every tensor of an open file lies inside it, has shape
// x dtype bytes, and overlaps no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/mapped_file.hpp"

namespace runtime {

struct StoredTensor {
  std::string dtype;  // as the format spells it: "BF16", "F32", "U8", ...
  std::vector<uint64_t> shape;
  std::span<const std::byte> data;  // not necessarily aligned

  uint64_t elements() const;
  std::optional<kernels::DType> float_type() const;  // F32, F16 or BF16; none: it holds others
  // The first `count` numbers of a tensor that has a float_type().
  std::vector<float> floats(size_t count) const;
};

std::string shape_text(std::span<const uint64_t> shape);  // "[3, 4]"

class SafeTensorsFile {
 public:
  // Throws std::runtime_error naming the file, the tensor and what is wrong.
  explicit SafeTensorsFile(const std::string& path);

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr: not there
  const std::string& path() const { return path_; }

 private:
  void read_header(std::string_view text, std::span<const std::byte> data);
  void check_overlaps() const;

  std::string path_;
  MappedFile file_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace runtime
