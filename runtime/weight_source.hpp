// Where a network takes its weights from: a weights file, or the parameters of a training run.
// Invariant: what a lookup returns has the shape that was asked for and a dtype the kernels take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.hpp"

namespace runtime {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // All throw std::runtime_error naming the tensor. Views live as long as the source.

  // A linear layer's weight [n, k]: tensor `name`.weight (F32, F16, BF16), or `name`.weight_packed
  // with `name`.weight_scale (MXFP4).
  virtual kernels::MatrixView matrix(const std::string& name, size_t n, size_t k) const = 0;
  // The tensor `name`, whole; not MXFP4.
  virtual kernels::MatrixView table(const std::string& name, size_t n, size_t k) const = 0;
  // The tensor `name` as fp32, of exactly this shape.
  virtual std::vector<float> floats(const std::string& name, std::vector<uint64_t> shape) const = 0;
  // The first `count` values of a tensor that has one long axis, which may be padded ([128], [1, 1,
  // heads, 1]).
  virtual std::vector<float> padded_floats(const std::string& name, size_t count) const = 0;
};

}  // namespace runtime
