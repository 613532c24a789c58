// MXFP4 products: weights stay 4-bit in memory; nibbles become bf16 by two byte shuffles, in
// registers.
#include <algorithm>

#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm_fp4.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::GemmPart;
using cpu::kBlock;
using cpu::kFp4Block;
using cpu::kFp4BlockBytes;
using cpu::kFp4RunBytes;
using cpu::kPanel;
using cpu::RowGroup;

using ByteTag = hn::Repartition<uint8_t, FloatTag>;
using ShortTag = hn::Repartition<uint16_t, FloatTag>;
using Bytes = hn::Vec<ByteTag>;
constexpr size_t kFewRows = 4;        // more no longer fit the registers beside the decoder
constexpr size_t kHalf = kPer16 / 2;  // byte vectors in a run: each holds kWidth column pairs

// The bf16 pattern of each E2M1 code (0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives), split into
// bytes.
alignas(16) constexpr uint8_t kHighByte[16] = {0x00, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                               0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
alignas(16) constexpr uint8_t kLowByte[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0,
                                              0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0};

struct Decoder {
  Bytes high, low;

  // Spelt out: GCC compiles default member initialisers without the target's instructions.
  KERNEL_FN Decoder()
      : high(hn::LoadDup128(ByteTag(), kHighByte)), low(hn::LoadDup128(ByteTag(), kLowByte)) {}

  // Codes (one per byte) of two inputs -> fn(input, bf16 pairs): columns i kWidth .. and 8 + i
  // kWidth .. in words[i], unscaled.
  template <class Fn>
  KERNEL_FN void two_inputs(const Bytes (&codes)[kHalf], size_t input, const Fn& fn) const {
    WordVector first[kHalf], second[kHalf];
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) {
      const Bytes upper = hn::TableLookupBytes(high, codes[i]);
      const Bytes lower = hn::TableLookupBytes(low, codes[i]);
      first[i] = hn::BitCast(WordTag(), hn::InterleaveLower(ByteTag(), lower, upper));
      second[i] = hn::BitCast(WordTag(), hn::InterleaveUpper(ByteTag(), lower, upper));
    }
    fn(input, first);
    fn(input + 1, second);
  }

  // A run of 4 inputs in ascending order.
  template <class Fn>
  KERNEL_FN void run(const uint8_t* bytes, const Fn& fn) const {
    const ByteTag tag;
    const Bytes nibble = hn::Set(tag, 15);
    Bytes packed[kHalf], codes[kHalf];
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) packed[i] = hn::LoadU(tag, bytes + i * 4 * kWidth);
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) codes[i] = hn::And(packed[i], nibble);
    two_inputs(codes, 0, fn);
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) {
      codes[i] =
          hn::And(hn::BitCast(tag, hn::ShiftRight<4>(hn::BitCast(ShortTag(), packed[i]))), nibble);
    }
    two_inputs(codes, 2, fn);
  }
};

// 2^(e - 127) of kWidth columns; e = 0 is the subnormal 2^-127.
KERNEL_FN Vector block_scale(const uint8_t* scales) {
  const hn::Rebind<uint8_t, WordTag> bytes;
  const auto shifted = hn::ShiftLeft<23>(hn::PromoteTo(WordTag(), hn::LoadU(bytes, scales)));
  return hn::BitCast(FloatTag(), hn::Max(shifted, hn::Set(WordTag(), 0x00400000u)));
}

// total = fma(scale, sum, total) for one panel of a tile; scale(v) of its vector v.
template <int R, int P, class Scale>
KERNEL_FN void add_scaled(const Tile<R, P>& tile, int p, const Scale& scale, float* total) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kPer16; ++v) {
    const Vector factor = scale(v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float* at = total + static_cast<size_t>(r) * kPanel + v * kWidth;
      const Vector sum = tile.sum[r][static_cast<size_t>(p) * kPer16 + v];
      hn::StoreU(hn::MulAdd(factor, sum, hn::LoadU(FloatTag(), at)), FloatTag(), at);
    }
  }
}

KERNEL_FN void clear(float* total, size_t count) {
  for (size_t i = 0; i < count; i += kWidth) Lanes::zero().store(total + i);
}

// Few rows: every nibble is used R times, straight from the registers it was decoded in.
template <int R, int P>
KERNEL_FN void stream_panels(const GemmPart& part, size_t panel, float* total) {
  const Decoder decoder;
  const RowGroup& group = part.groups[0];
  const uint8_t* panels = reinterpret_cast<const uint8_t*>(part.w->panel(panel));
  const size_t step = part.w->panel_bytes(), blocks = part.w->k() / kFp4Block;
  constexpr size_t kAhead = 2048;
  clear(total, P * R * kPanel);
  for (size_t b = 0; b < blocks; ++b) {
    constexpr size_t kSlices = kBlock / kFp4Block;
    const uint8_t* block = panels + b * kFp4BlockBytes;
    // Past its end a stream goes on in the next P panels.
    const size_t ahead = kAhead + ((b + 1) * kFp4BlockBytes + kAhead > step ? (P - 1) * step : 0);
    const float* x = group.x + b / kSlices * group.block_step + b % kSlices * kFp4Block * R;
    Tile<R, P> tile;
    tile.clear();
    for (size_t run = 0; run < 8; ++run) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const uint8_t* bytes = block + static_cast<size_t>(p) * step + kPanel + run * kFp4RunBytes;
        const float* inputs = read_again(x + run * 4 * R);
        __builtin_prefetch(bytes + ahead);
        decoder.run(bytes, [&](size_t k, const WordVector(&pairs)[kHalf]) KERNEL_LAMBDA {
          Vector w[kPer16];
#pragma GCC unroll 4
          for (size_t i = 0; i < kHalf; ++i) widen(pairs[i], w[i], w[kHalf + i]);
          tile.step(p, w, inputs + k * R);
        });
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const uint8_t* scales = block + static_cast<size_t>(p) * step;
      add_scaled(
          tile, p, [&](size_t v) KERNEL_LAMBDA { return block_scale(scales + v * kWidth); },
          total + static_cast<size_t>(p) * R * kPanel);
    }
  }
  write_panels(part, total, R, panel, P);
}

void few_rows(const GemmPart& part, float* scratch) {
  with_rows(part.groups[0].rows, [&]<int R>() {
    if constexpr (R <= kFewRows) {
      constexpr int kWide = R <= 2 ? 2 : 1;
      size_t panel = part.panel_begin;
      for (; panel + kWide <= part.panel_end; panel += kWide)
        stream_panels<R, kWide>(part, panel, scratch);
      for (; panel < part.panel_end; ++panel) stream_panels<R, 1>(part, panel, scratch);
    }
  });
}

// A decoded block of one panel: at most 256 inputs as floats (widening bf16 again for every group
// would take the port that the multiply-adds need), unscaled, with the scales beside them.
struct DecodedBlock {
  float weights[kBlock * kPanel];             // [256][16]
  float scales[kBlock / kFp4Block * kPanel];  // [8][16]
};
static_assert(sizeof(DecodedBlock) == cpu::kDecodedBlockFloats * sizeof(float));

KERNEL_FN void decode_block(const uint8_t* blocks, size_t inputs, ptrdiff_t ahead,
                            DecodedBlock& to) {
  const Decoder decoder;
  for (size_t b = 0; b < inputs / kFp4Block; ++b) {
    const uint8_t* block = blocks + b * kFp4BlockBytes;
    for (size_t v = 0; v < kPer16; ++v) {
      hn::Store(block_scale(block + v * kWidth), FloatTag(), to.scales + b * kPanel + v * kWidth);
    }
    for (size_t run = 0; run < 8; ++run) {
      const uint8_t* bytes = block + kPanel + run * kFp4RunBytes;
      float* row = to.weights + (b * kFp4Block + run * 4) * kPanel;
      __builtin_prefetch(bytes + ahead);
      decoder.run(bytes, [&](size_t k, const WordVector(&pairs)[kHalf]) KERNEL_LAMBDA {
        Vector w[kPer16];
#pragma GCC unroll 4
        for (size_t i = 0; i < kHalf; ++i) widen(pairs[i], w[i], w[kHalf + i]);
#pragma GCC unroll 4
        for (size_t i = 0; i < kPer16; ++i)
          hn::Store(w[i], FloatTag(), row + k * kPanel + i * kWidth);
      });
    }
  }
}

// A decoded block against one group, chain by chain of 32 inputs.
template <int R>
KERNEL_FN void decoded_tile(const DecodedBlock& block, const float* x, size_t inputs,
                            float* total) {
  for (size_t b = 0; b < inputs / kFp4Block; ++b) {
    Tile<R, 1> tile;
    tile.clear();
    for (size_t i = b * kFp4Block; i < (b + 1) * kFp4Block; ++i) {
      Vector w[kPer16];
      PanelRow<DType::kF32>::load(block.weights + i * kPanel, w);
      tile.step(0, w, x + i * R);
    }
    const float* scales = block.scales + b * kPanel;
    add_scaled(
        tile, 0, [&](size_t v) KERNEL_LAMBDA { return hn::Load(FloatTag(), scales + v * kWidth); },
        total);
  }
}

void many_rows(const GemmPart& part, float* scratch) {
  auto& decoded = *reinterpret_cast<DecodedBlock*>(scratch);
  float* sums = scratch + cpu::kDecodedBlockFloats;
  const size_t sum_step = part.rows() * kPanel;
  clear(sums, (part.panel_end - part.panel_begin) * sum_step);
  sweep_blocks(part, sums, [&](const PanelBlock& at, float* totals) {
    constexpr size_t kBytes = kBlock / kFp4Block * kFp4BlockBytes;
    const ptrdiff_t ahead = at.panels_ahead * static_cast<ptrdiff_t>(part.w->panel_bytes()) +
                            at.blocks_ahead * static_cast<ptrdiff_t>(kBytes);
    const size_t inputs = std::min(kBlock, part.w->k() - at.block * kBlock);
    for (size_t p = 0; p < at.panels; ++p) {
      const auto* panel = reinterpret_cast<const uint8_t*>(part.w->panel(at.panel + p));
      decode_block(panel + at.block * kBytes, inputs, ahead, decoded);
      float* total = totals + p * sum_step;
      for (size_t g = 0; g < part.group_count; ++g) {
        const RowGroup& group = part.groups[g];
        with_rows(group.rows, [&]<int R>() {
          decoded_tile<R>(decoded, group.x + at.block * group.block_step, inputs, total);
          total += R * kPanel;
        });
      }
    }
  });
}

void gemm_fp4_target(const GemmPart& part, float* scratch) {
  if (part.group_count == 1 && part.groups[0].rows <= kFewRows) return few_rows(part, scratch);
  many_rows(part, scratch);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(gemm_fp4_target);

void cpu::gemm_fp4(const GemmPart& part, float* scratch) {
  HWY_DYNAMIC_DISPATCH(gemm_fp4_target)(part, scratch);
}
}  // namespace kernels
#endif
