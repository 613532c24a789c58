// Writes one .safetensors file. Tensors are declared first and filled one at a time while the file
// is written, so a large file never lies in memory whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace runtime {

class SafeTensorsWriter {
 public:
  using Fill = std::function<void(std::span<std::byte> data)>;

  // `dtype` as the format spells it: "BF16", "F32", "U8", "U16", "I64".
  void add(std::string name, std::string dtype, std::vector<uint64_t> shape, Fill fill);
  // Throws std::runtime_error naming the path.
  void write(const std::string& path) const;

 private:
  struct Entry {
    std::string name, dtype;
    std::vector<uint64_t> shape;
    uint64_t bytes = 0;
    Fill fill;
  };
  std::vector<Entry> entries_;
};

}  // namespace runtime
