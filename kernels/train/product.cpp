#include "kernels/train/product.hpp"

#include <algorithm>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/tile.hpp"
#include "kernels/train/pack.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// From one panel of a to the next: longer than a panel by a cache line, so that the panels do not
// share the sets of L1 and there is room for what is written past a panel's end.
constexpr size_t panel_step(size_t depth) { return (kProductRows * depth + 15) / 16 * 16 + 16; }

constexpr size_t kNearFloats = size_t{100} << 10;  // an operand this small is in L2 anyway

// c[R, columns] (+)= a panel . b panel
template <int R>
KERNEL_FN void product_tile(const float* a, const float* b, size_t k, Grid<float> c, size_t columns,
                            bool add) {
  Tile<R, 1> tile;
  tile.clear();
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r) __builtin_prefetch(c.row(r) + 15, 1);
#pragma GCC unroll 4
  for (size_t i = 0; i < k; ++i) {
    Vector values[kPer16];
    PanelRow<DType::kF32>::load(b + i * kProductColumns, values);
    tile.step(0, values, a + i * R);
  }
  if (columns >= kProductColumns) {
#pragma GCC unroll 8
    for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kPer16; ++v) {
        float* const to = c.row(r) + v * kWidth;
        const Lanes sum = tile.sum[r][v];
        (add ? Lanes::load(to) + sum : sum).store(to);
      }
    }
    return;
  }
  alignas(64) float sums[R * kProductColumns];
  tile.add_to(sums, 0, true);
  for (size_t r = 0; r < R; ++r) {
    for (size_t j = 0; j < columns; ++j) {
      const float sum = sums[r * kProductColumns + j];
      c.row(r)[j] = add ? c.row(r)[j] + sum : sum;
    }
  }
}

// Part of one operand: `rows` of the result's rows (of b: columns), `k` of the summed index.
struct Part {
  Grid<const float> from;  // at the first of both
  bool k_first = false;    // stored [k, rows]
  size_t rows = 0, k = 0;
  size_t rows_on = 0;  // rows from the first on that the operand has, this part's and later ones

  float at(size_t row, size_t i) const { return k_first ? from.row(i)[row] : from.row(row)[i]; }
};

// Packs panels of W rows, panel_step apart. Where the last one is short it is `narrow`: as wide as
// its rows, or filled up with zeros.
template <size_t W>
void pack(const Part& part, float* to, size_t panel_step, bool narrow) {
  size_t packed = part.rows / W * W;
  if (part.k_first) {
    pack_columns<W>(part.from.data, part.from.ld, part.rows, part.rows_on, part.k, to, panel_step);
  } else {
    for (size_t r = 0; r < packed; r += W)
      pack_rows<W>(part.from.row(r), part.from.ld, part.k, to + r / W * panel_step);
  }
  const size_t left = part.rows - packed, width = narrow ? left : W;
  to += packed / W * panel_step;
  for (size_t i = 0; left != 0 && i < part.k; ++i) {
    for (size_t r = 0; r < width; ++r) to[i * width + r] = r < left ? part.at(packed + r, i) : 0.0f;
  }
}

// Memory that is asked for into L2 a piece at a time, while tiles are multiplied: its rows are too
// short for the hardware's prefetchers.
class Ahead {
 public:
  Ahead(const float* data, size_t ld, size_t rows, size_t width, size_t pieces)
      : data_(data), ld_(ld), rows_(rows), end_(width + kLine - 1) {
    piece_ = (rows * ((width + 2 * kLine - 1) / kLine) + pieces - 1) / pieces;
  }
  KERNEL_FN void fetch_piece() {
    for (size_t line = 0; line < piece_ && row_ < rows_; ++line) {
      __builtin_prefetch(data_ + row_ * ld_ + column_, 0, 2);
      column_ += kLine;
      if (column_ < end_) continue;
      column_ = 0;
      ++row_;
    }
  }

 private:
  static constexpr size_t kLine = 16;
  const float* data_;
  size_t ld_, rows_, end_, piece_, row_ = 0, column_ = 0;
};

// Packed a [rows] times packed b [columns] into c. Meanwhile the next block of a is fetched.
void multiply_packed(const float* a, size_t a_step, size_t rows, const float* b, size_t columns,
                     size_t k, Grid<float> c, bool add, Ahead& next_a) {
  for (size_t j = 0; j < columns; j += kProductColumns) {
    const float* panel = a;
    for (size_t i = 0; i < rows; i += kProductRows, panel += a_step) {
      next_a.fetch_piece();
      const Grid<float> at = c.from(i).columns(j);
      with_rows(rows - i,
                [&]<int R>() { product_tile<R>(panel, b + j * k, k, at, columns - j, add); });
    }
  }
}

// One pass over c: at most kPassBlocks of k, at most kPackedColumns columns. b is packed whole,
// then a block by block, so that a strip of c stays in L2 until all of k is in it.
void multiply_pass(const Product<float>& p, size_t n0, size_t columns, size_t k0, size_t k_end,
                   size_t depth, float* scratch) {
  float* const packed_a = scratch;
  const size_t a_step = panel_step(depth);
  float* const packed_b = scratch + kPackedRows / kProductRows * a_step;
  const size_t padded = (columns + kProductColumns - 1) / kProductColumns * kProductColumns;
  for (size_t k = k0; k < k_end; k += depth) {
    const size_t some = std::min(depth, k_end - k);
    const Grid<const float> from =
        p.b_transposed ? p.b.from(n0).columns(k) : p.b.from(k).columns(n0);
    pack<kProductColumns>({from, !p.b_transposed, columns, some, p.n - n0},
                          packed_b + (k - k0) * padded, some * kProductColumns, false);
  }
  const auto block_of_a = [&](size_t m0, size_t k) -> Part {
    return {p.a_transposed ? p.a.from(k).columns(m0) : p.a.from(m0).columns(k), p.a_transposed,
            std::min(kPackedRows, p.m - m0), std::min(depth, k_end - k), p.m - m0};
  };
  for (size_t m0 = 0; m0 < p.m; m0 += kPackedRows) {
    for (size_t k = k0; k < k_end; k += depth) {
      const Part part = block_of_a(m0, k);
      pack<kProductRows>(part, packed_a, a_step, true);
      const bool last = k + depth >= k_end;
      const bool more = p.m * p.k > kNearFloats && (!last || m0 + kPackedRows < p.m);
      const Part next =
          more ? block_of_a(last ? m0 + kPackedRows : m0, last ? k0 : k + depth) : Part{};
      const size_t tiles = (part.rows + kProductRows - 1) / kProductRows * padded / kProductColumns;
      Ahead ahead(next.from.data, next.from.ld, next.k_first ? next.k : next.rows,
                  next.k_first ? next.rows : next.k, tiles);
      multiply_packed(packed_a, a_step, part.rows, packed_b + (k - k0) * padded, columns, part.k,
                      p.c.from(m0).columns(n0), p.add || k != 0, ahead);
    }
  }
}

void multiply_target(const Product<float>& p, float* scratch) {
  const auto equal_parts = [](size_t whole, size_t most) {
    const size_t parts = (whole + most - 1) / most;
    return (whole + parts - 1) / parts;
  };
  const size_t depth = equal_parts(p.k, p.k <= kWholeDepth ? kWholeDepth : kProductDepth);
  const size_t panels = (p.n + kProductColumns - 1) / kProductColumns;
  const size_t step = equal_parts(panels, kPackedColumns / kProductColumns) * kProductColumns;
  for (size_t n0 = 0; n0 < p.n; n0 += step) {
    const size_t columns = std::min(step, p.n - n0), pass = kPassBlocks * depth;
    for (size_t k0 = 0; k0 < p.k; k0 += pass)
      multiply_pass(p, n0, columns, k0, std::min(k0 + pass, p.k), depth, scratch);
  }
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(multiply_target);

void multiply(const Product<float>& p, float* scratch) {
  if (p.k != 0) return HWY_DYNAMIC_DISPATCH(multiply_target)(p, scratch);
  for (size_t r = 0; !p.add && r < p.m; ++r) std::fill_n(p.c.row(r), p.n, 0.0f);
}
}  // namespace kernels
#endif
