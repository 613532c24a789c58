#include "kernels/adapter/low_rank.hpp"

#include "kernels/base/row_step.hpp"

namespace kernels {

MutableRows LowRankRows::take(size_t rows, size_t width) {
  const size_t step = row_step(width);
  return {memory_.reserve(rows * step), step};
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
