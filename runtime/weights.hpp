// The weights of a Hugging Face directory by tensor name: one model.safetensors, or shards listed
// in model.safetensors.index.json. Names are given without the `language_model.` prefix that K3
// files carry.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/safetensors.hpp"
#include "runtime/weight_source.hpp"

namespace runtime {

class WeightsFile final : public WeightSource {
 public:
  // Throws std::runtime_error naming the file or tensor that is wrong.
  static WeightsFile load(const std::string& directory);

  const std::string& prefix() const { return prefix_; }  // before every name, or empty
  // Of every tensor's name, dtype, shape and bytes: reads all of them once, at the speed of memory.
  uint64_t digest() const;
  bool contains(std::string_view name) const;
  // Views point into the mapped file.
  kernels::MatrixView matrix(const std::string& name, size_t n, size_t k) const override;
  kernels::MatrixView table(const std::string& name, size_t n, size_t k) const override;
  std::vector<float> floats(const std::string& name, std::vector<uint64_t> shape) const override;
  std::vector<float> padded_floats(const std::string& name, size_t count) const override;

 private:
  WeightsFile() = default;
  void add_shard(const std::string& path);
  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& require(const std::string& name) const;
  kernels::MatrixView mxfp4(const std::string& name, size_t n, size_t k) const;
  const std::byte* aligned(const StoredTensor& tensor, size_t alignment) const;
  std::vector<float> convert(const std::string& name, const StoredTensor& tensor,
                             size_t count) const;
  std::string full_name(const std::string& name) const { return prefix_ + name; }

  std::string directory_, prefix_;
  std::vector<std::unique_ptr<SafeTensorsFile>> shards_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;  // of all shards
  // The format does not promise alignment; the rare tensor that lacks it is copied here. Loading is
  // one thread's work.
  mutable std::deque<std::vector<std::byte>> aligned_copies_;
};

}  // namespace runtime
