#include "kernels/adapter/low_rank.hpp"

#include <cstdint>

namespace kernels {

MutableRows LowRankRows::take(size_t rows, size_t width) {
  constexpr size_t kLine = 16;  // floats
  const size_t ld = ((width + kLine - 1) / kLine | 1) * kLine;
  if (data_.size() < rows * ld + kLine) data_.resize(rows * ld + kLine);
  const auto address = reinterpret_cast<uintptr_t>(data_.data());
  const size_t skip = (64 - address % 64) % 64 / sizeof(float);
  return {data_.data() + skip, ld};
}

void add_low_rank(Ops& ops, const LowRank& factors, Rows x, MutableRows y, size_t rows,
                  LowRankScratch& scratch) {
  if (!factors) return;
  const MutableRows inner = scratch.inner.take(rows, factors.a->n());
  const MutableRows delta = scratch.delta.take(rows, factors.b->n());
  ops.matmul(x, *factors.a, inner, rows);
  ops.matmul(inner, *factors.b, delta, rows);
  ops.add(delta, y, rows, factors.b->n());
}

}  // namespace kernels
