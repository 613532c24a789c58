// The rows of one shard of a training batch: pieces of documents one after the other, each a
// sequence that starts from an empty state.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/train/gradient_ops.hpp"

namespace runtime {

struct TrainingBatch {
  std::vector<int32_t> tokens;   // [rows] what the network reads
  std::vector<int32_t> targets;  // [rows] the token after it in its document
  std::vector<float> weights;    // [rows] of the target in the loss; 0: not learned
  std::vector<kernels::Sequence> sequences;

  size_t rows() const { return tokens.size(); }
  double weight() const {
    double sum = 0;
    for (const float one : weights) sum += static_cast<double>(one);
    return sum;
  }
};

}  // namespace runtime
