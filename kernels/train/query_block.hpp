// A block of queries of one head against the keys up to its last query.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

struct QueryBlock {
  size_t first = 0, rows = 0;  // queries of the sequence
  size_t keys = 0, d_v = 0;
  float scale = 1;                 // of the scores
  Grid<float> p, dp;               // [rows, keys] scores, then probabilities; their gradients
  Grid<float> out, dout;           // [rows, d_v] before the gate
  Grid<const float> gate, dgated;  // [rows, d_v] gate (or null) and gradient after it
  Grid<float> dgate;
  float* dot = nullptr;  // [rows] dout . out
};

}  // namespace kernels
