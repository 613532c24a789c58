// Single-precision products of row-major matrices with any transposition, compiled per SIMD target.
// Both operands are packed into panels on the way: rows of the result by 6, its columns by 16.
//
// Order of a sum: k, where more than 256, is cut into equal blocks of at most 192; a block is one
// FMA chain from +0 in ascending order, and the blocks are added in order. So neither m nor n
// changes a sum.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"

namespace kernels {

constexpr size_t kProductRows = 6, kProductColumns = 16;  // of the register tile
constexpr size_t kWholeDepth = 256;                       // the longest k that is one block
constexpr size_t kProductDepth = 192;                     // the longest block of a longer one
// What is packed at once: 54 KB of a and, beside them in L2, a strip of c; 576 KB of b.
constexpr size_t kPackedRows = 72, kPackedColumns = 384, kPassBlocks = 2;
// Floats of scratch a product needs.
constexpr size_t kProductScratch =
    kPackedRows * (kWholeDepth + 16) + kPassBlocks * kProductDepth * kPackedColumns;

void multiply(const Product<float>& args, float* scratch);

}  // namespace kernels
