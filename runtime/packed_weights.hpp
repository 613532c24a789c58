// Takes one layer's weights out of their source into the layout the kernels stream. Invariant:
// what was taken no longer needs the source.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/weight_source.hpp"

namespace runtime {

class PackedWeights {
 public:
  PackedWeights(const WeightSource& source, kernels::Ops& ops) : source_(source), ops_(ops) {}

  // One part of a stack: the linear layer `name` with `n` outputs.
  struct Part {
    std::string name;
    size_t n = 0;
  };

  kernels::MatrixPtr matrix(const std::string& name, size_t n, size_t k);
  kernels::MatrixPtr pack(const kernels::MatrixView& view);
  // Several layers that read the same input, as one matrix: their outputs lie side by side, in the
  // order of the parts. Parts of unequal dtype are widened to fp32.
  kernels::MatrixPtr stack(std::span<const Part> parts, size_t k);
  std::vector<float> vector(const std::string& name, size_t count);
  std::vector<float> floats(const std::string& name, std::vector<uint64_t> shape);
  std::vector<float> padded(const std::string& name, size_t count);

  const WeightSource& source() const { return source_; }
  uint64_t bytes() const { return bytes_; }  // of everything taken so far

 private:
  std::vector<float> counted(std::vector<float> values);

  const WeightSource& source_;
  kernels::Ops& ops_;
  uint64_t bytes_ = 0;
};

}  // namespace runtime
