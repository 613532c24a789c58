// Register tile of a matrix product: R rows x P panels over a run of inputs. Included once per SIMD
// target.
#if defined(KERNELS_CPU_TILE_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_TILE_HPP_
#else
#define KERNELS_CPU_TILE_HPP_
#endif

#include <algorithm>

#include "kernels/base/dtype.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN

using Vector = hn::Vec<FloatTag>;
using WordVector = hn::Vec<WordTag>;

// Two bf16 of one 32-bit word (low half first) as floats.
KERNEL_FN void widen(WordVector pair, Vector& low, Vector& high) {
  low = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pair));
  high = hn::BitCast(FloatTag(), hn::And(pair, hn::Set(WordTag(), 0xffff0000u)));
}

// The same pointer, but the compiler no longer knows it: values read through it are read again
// instead of being kept in registers, which the sums need.
KERNEL_FN const float* read_again(const float* x) {
  asm volatile("" : "+r"(x));
  return x;
}

// How 16 weights of one input become kPer16 vectors of floats, in column order.
template <DType kType>
struct PanelRow;

template <>
struct PanelRow<DType::kF32> {
  using Stored = float;
  static KERNEL_FN void load(const float* row, Vector* w) {
    for (size_t i = 0; i < kPer16; ++i) w[i] = hn::Load(FloatTag(), row + i * kWidth);
  }
};

template <>
struct PanelRow<DType::kF16> {
  using Stored = uint16_t;
  static KERNEL_FN void load(const uint16_t* row, Vector* w) {
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    for (size_t i = 0; i < kPer16; ++i) {
      w[i] = hn::PromoteTo(
          FloatTag(), hn::Load(half, reinterpret_cast<const hwy::float16_t*>(row) + i * kWidth));
    }
  }
};

template <>
struct PanelRow<DType::kBF16> {
  using Stored = uint16_t;
  static KERNEL_FN void load(const uint16_t* row, Vector* w) {
    for (size_t i = 0; i < kPer16 / 2; ++i) {
      const auto pair = hn::Load(WordTag(), reinterpret_cast<const uint32_t*>(row) + i * kWidth);
      widen(pair, w[i], w[kPer16 / 2 + i]);
    }
  }
};

// Calls fn<R>() for R = rows, 1..6: tiles are compiled per row count so that their sums live in
// registers.
template <class Fn>
KERNEL_FN void with_rows(size_t rows, const Fn& fn) {
  switch (rows) {
    case 1:
      return fn.template operator()<1>();
    case 2:
      return fn.template operator()<2>();
    case 3:
      return fn.template operator()<3>();
    case 4:
      return fn.template operator()<4>();
    case 5:
      return fn.template operator()<5>();
    default:
      return fn.template operator()<6>();
  }
}

constexpr int kPairRows = 3;  // a tile this low has too few chains with one panel

// sum[r][panel vector] of one chain; all loops are unrolled, or GCC keeps the array in memory.
template <int R, int P>
struct Tile {
  static constexpr int kVectors = P * static_cast<int>(kPer16);
  Vector sum[R][kVectors];

  KERNEL_FN Tile() {}  // spelt out: an implicit one lacks the target's instructions

  KERNEL_FN void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(FloatTag());
    }
  }

  // One input of panel p.
  KERNEL_FN void step(int p, const Vector* w, const float* x) {
    if constexpr (P > 1 && R * P > 4) x = read_again(x);  // 12 sums, and inputs that panels share
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector value = hn::Set(FloatTag(), x[r]);
#pragma GCC unroll 16
      for (int v = 0; v < static_cast<int>(kPer16); ++v) {
        const int at = p * static_cast<int>(kPer16) + v;
        sum[r][at] = hn::MulAdd(w[v], value, sum[r][at]);
      }
    }
  }

  // total[r][p][16] (+)= sum, rows of one panel 16 apart, panels `panel_step` apart.
  KERNEL_FN void add_to(float* total, size_t panel_step, bool first) const {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        float* at = total + static_cast<size_t>(v) / kPer16 * panel_step +
                    static_cast<size_t>(r) * 16 + static_cast<size_t>(v) % kPer16 * kWidth;
        hn::StoreU(first ? sum[r][v] : hn::Add(hn::LoadU(FloatTag(), at), sum[r][v]), FloatTag(),
                   at);
      }
    }
  }
};

// y = the sums [panel][rows][16] of `count` panels, row by row, leaving out columns past n.
KERNEL_FN void write_panels(const cpu::GemmPart& part, const float* sums, size_t rows, size_t panel,
                            size_t count) {
  const size_t column = panel * cpu::kPanel;
  for (size_t r = 0; r < rows; ++r) {
    float* y = part.y + (part.groups[0].first_row + r) * part.y_ld + column;
    for (size_t p = 0; p < count; ++p) {
      const float* from = sums + (p * rows + r) * cpu::kPanel;
      float* to = y + p * cpu::kPanel;
      if (part.w->n() - column >= (p + 1) * cpu::kPanel) {
        for (size_t i = 0; i < kPer16; ++i) Lanes::load(from + i * kWidth).store(to + i * kWidth);
      } else {
        const size_t columns = part.w->n() - column - p * cpu::kPanel;
        for (size_t c = 0; c < columns; ++c) to[c] = from[c];
      }
    }
  }
}

// A block of 256 inputs of one panel or of two side by side, and how far on the block after it
// lies.
struct PanelBlock {
  size_t panel, panels, block;
  ptrdiff_t panels_ahead, blocks_ahead;
};

// Runs fn(PanelBlock, sums of its first panel) for every block of every panel of a part. Few rows
// stay in L2 whole: then each panel is one sequential stream. Of many, only one block's slices
// stay. Panels are taken in pairs where the last group is short: alone it has too few chains.
template <class Fn>
KERNEL_FN void sweep_blocks(const cpu::GemmPart& part, float* sums, const Fn& fn) {
  constexpr size_t kStreamFloats = size_t{64} << 10;  // 256 KB
  const size_t rows = part.rows(), inputs = part.w->k();
  const size_t panels = part.panel_end - part.panel_begin;
  const size_t together = part.groups[part.group_count - 1].rows == kPairRows ? 2 : 1;
  const size_t turns = (panels + together - 1) / together;
  const size_t blocks = (inputs + cpu::kBlock - 1) / cpu::kBlock;
  const bool stream = rows * inputs <= kStreamFloats;
  const size_t outer = stream ? turns : blocks, inner = stream ? blocks : turns;
  for (size_t i = 0; i < outer; ++i) {
    for (size_t j = 0; j < inner; ++j) {
      // One step of the inner index, or back to its begin and one step of the outer.
      const bool last = j + 1 == inner;
      const ptrdiff_t step = last ? -static_cast<ptrdiff_t>(j) : 1, next = last ? 1 : 0;
      const size_t p = (stream ? i : j) * together, b = stream ? j : i;
      fn(PanelBlock{part.panel_begin + p, std::min(together, panels - p), b,
                    (stream ? next : step) * static_cast<ptrdiff_t>(together),
                    stream ? step : next},
         sums + p * rows * cpu::kPanel);
    }
  }
  write_panels(part, sums, rows, part.panel_begin, panels);
}

KERNEL_NAMESPACE_END
#endif
