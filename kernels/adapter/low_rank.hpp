// Low-rank additions to linear layers (LoRA, Hu et al. 2021): y += B (A x), computed beside the
// product with the base matrix, which stays as it is, however it is quantised.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/cpu/scratch.hpp"
#include "kernels/ops.hpp"

namespace kernels {

// Factors in the layout of an Ops, or none. Several layers may share a factor.
struct LowRank {
  std::shared_ptr<const Matrix> a;  // [rank, inputs]
  std::shared_ptr<const Matrix> b;  // [outputs, rank], times the adapter's scale alpha / rank

  explicit operator bool() const { return a != nullptr; }
};

// Grow-only rows; the contents are undefined, and earlier rows die when it grows.
class LowRankRows {
 public:
  MutableRows take(size_t rows, size_t width);

 private:
  cpu::Scratch memory_;
};

struct LowRankScratch {
  LowRankRows inner, delta;  // [rows, rank], [rows, outputs]
};

// y += B (A x), where there are factors. The value of a row depends on that row alone.
void add_low_rank(Ops& ops, const LowRank& factors, Rows x, MutableRows y, size_t rows,
                  LowRankScratch& scratch);

}  // namespace kernels
