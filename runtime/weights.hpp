// The weights of a Hugging Face directory by tensor name: one model.safetensors, or shards listed
// in model.safetensors.index.json. Names are given without the `language_model.` prefix that K3
// files carry. Invariant: what a lookup returns has the shape that was asked for and a dtype the
// kernels take.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/safetensors.hpp"

namespace runtime {

class WeightsFile {
 public:
  // Throws std::runtime_error naming the file or tensor that is wrong.
  static WeightsFile load(const std::string& directory);

  // Of every tensor's name, dtype, shape and bytes: reads all of them once, at the speed of memory.
  uint64_t digest() const;
  bool contains(std::string_view name) const;
  // A linear layer's weight [n, k]: tensor `name`.weight (F32, F16, BF16), or `name`.weight_packed
  // with `name`.weight_scale (MXFP4). Points into the mapped file: valid while this object lives.
  kernels::MatrixView matrix(const std::string& name, size_t n, size_t k) const;
  kernels::MatrixView table(const std::string& name, size_t n,
                            size_t k) const;  // the full tensor name; not MXFP4
  // The tensor `name` as fp32, of exactly this shape.
  std::vector<float> floats(const std::string& name, std::vector<uint64_t> shape) const;
  // The first `count` values of a tensor that has one long axis, which may be padded ([128], [1, 1,
  // heads, 1]).
  std::vector<float> padded_floats(const std::string& name, size_t count) const;

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
