// Register tile of a matrix product: R rows x P panels over a run of inputs. Included once per SIMD
// target.
#if defined(KERNELS_CPU_TILE_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_TILE_HPP_
#else
#define KERNELS_CPU_TILE_HPP_
#endif

#include "kernels/base/dtype.hpp"
#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN

using Vector = hn::Vec<FloatTag>;

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
    const WordTag words;
    for (size_t i = 0; i < kPer16 / 2; ++i) {
      const auto pair = hn::Load(words, reinterpret_cast<const uint32_t*>(row) + i * kWidth);
      w[i] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pair));
      w[kPer16 / 2 + i] = hn::BitCast(FloatTag(), hn::And(pair, hn::Set(words, 0xffff0000u)));
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

// sum[r][panel vector] of one chain; all loops are unrolled, or GCC keeps the array in memory.
template <int R, int P>
struct Tile {
  static constexpr int kVectors = P * static_cast<int>(kPer16);
  Vector sum[R][kVectors];

  KERNEL_FN void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(FloatTag());
    }
  }

  // One input of panel p.
  KERNEL_FN void step(int p, const Vector* w, const float* x) {
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

// Copies the sums of one panel to y, leaving out columns past n.
KERNEL_FN void write_panel(const float* total, size_t rows, size_t columns, float* y, size_t y_ld) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = total + r * 16;
    float* to = y + r * y_ld;
    if (columns >= 16) {
      for (size_t i = 0; i < kPer16; ++i) Lanes::load(from + i * kWidth).store(to + i * kWidth);
    } else {
      for (size_t c = 0; c < columns; ++c) to[c] = from[c];
    }
  }
}

KERNEL_NAMESPACE_END
#endif
