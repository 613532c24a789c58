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

  // Codes (one per byte) of two inputs -> the weights of both, unscaled: w[input][panel vector].
  KERNEL_FN void two_inputs(const Bytes (&codes)[kHalf], Vector (&w)[2][kPer16]) const {
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) {
      const Bytes upper = hn::TableLookupBytes(high, codes[i]);
      const Bytes lower = hn::TableLookupBytes(low, codes[i]);
      const auto first = hn::BitCast(WordTag(), hn::InterleaveLower(ByteTag(), lower, upper));
      const auto second = hn::BitCast(WordTag(), hn::InterleaveUpper(ByteTag(), lower, upper));
      const auto mask = hn::Set(WordTag(), 0xffff0000u);
      w[0][i] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(first));
      w[0][kHalf + i] = hn::BitCast(FloatTag(), hn::And(first, mask));
      w[1][i] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(second));
      w[1][kHalf + i] = hn::BitCast(FloatTag(), hn::And(second, mask));
    }
  }

  // A run of 4 inputs; fn(input, weights) is called in ascending order.
  template <class Fn>
  KERNEL_FN void run(const uint8_t* bytes, const Fn& fn) const {
    const ByteTag tag;
    const Bytes nibble = hn::Set(tag, 15);
    Bytes packed[kHalf], codes[kHalf];
    Vector w[2][kPer16];
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) packed[i] = hn::LoadU(tag, bytes + i * 4 * kWidth);
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) codes[i] = hn::And(packed[i], nibble);
    two_inputs(codes, w);
    fn(0, w[0]);
    fn(1, w[1]);
#pragma GCC unroll 4
    for (size_t i = 0; i < kHalf; ++i) {
      codes[i] =
          hn::And(hn::BitCast(tag, hn::ShiftRight<4>(hn::BitCast(ShortTag(), packed[i]))), nibble);
    }
    two_inputs(codes, w);
    fn(2, w[0]);
    fn(3, w[1]);
  }
};

// 2^(e - 127) of kWidth columns; e = 0 is the subnormal 2^-127.
KERNEL_FN Vector block_scale(const uint8_t* scales) {
  const hn::Rebind<uint8_t, WordTag> bytes;
  const auto shifted = hn::ShiftLeft<23>(hn::PromoteTo(WordTag(), hn::LoadU(bytes, scales)));
  return hn::BitCast(FloatTag(), hn::Max(shifted, hn::Set(WordTag(), 0x00400000u)));
}

// total = fma(2^e, sum, total) for one panel of a tile.
template <int R, int P>
KERNEL_FN void add_scaled(const Tile<R, P>& tile, int p, const uint8_t* scales, float* total) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kPer16; ++v) {
    const Vector scale = block_scale(scales + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float* at = total + static_cast<size_t>(r) * kPanel + v * kWidth;
      const Vector sum = tile.sum[r][static_cast<size_t>(p) * kPer16 + v];
      hn::StoreU(hn::MulAdd(scale, sum, hn::LoadU(FloatTag(), at)), FloatTag(), at);
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
  const size_t step = part.w->panel_bytes();
  clear(total, P * R * kPanel);
  for (size_t b = 0; b < part.w->k() / kFp4Block; ++b) {
    const uint8_t* block = panels + b * kFp4BlockBytes;
    const float* x = group.x + b * kFp4Block * R;
    Tile<R, P> tile;
    tile.clear();
    for (size_t run = 0; run < 8; ++run) {
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const uint8_t* bytes = block + static_cast<size_t>(p) * step + kPanel + run * kFp4RunBytes;
        __builtin_prefetch(bytes + 1024);
        decoder.run(bytes, [&](size_t k, const Vector* w)
                               KERNEL_LAMBDA { tile.step(p, w, x + (run * 4 + k) * R); });
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      add_scaled(tile, p, block + static_cast<size_t>(p) * step,
                 total + static_cast<size_t>(p) * R * kPanel);
    }
  }
  for (size_t p = 0; p < P; ++p) {
    const size_t column = (panel + p) * kPanel;
    write_panel(total + p * R * kPanel, R, part.w->n() - column,
                part.y + group.first_row * part.y_ld + column, part.y_ld);
  }
}

void few_rows(const GemmPart& part, float* scratch) {
  with_rows(part.groups[0].rows, [&]<int R>() {
    constexpr int kWide = R <= 2 ? 2 : 1;
    size_t panel = part.panel_begin;
    for (; panel + kWide <= part.panel_end; panel += kWide)
      stream_panels<R, kWide>(part, panel, scratch);
    for (; panel < part.panel_end; ++panel) stream_panels<R, 1>(part, panel, scratch);
  });
}

// Decodes `inputs` (<= 256) inputs of a panel to floats [inputs][16], unscaled.
KERNEL_FN void decode_block(const uint8_t* blocks, size_t inputs, float* decoded) {
  const Decoder decoder;
  for (size_t k = 0; k < inputs; k += 4) {
    const uint8_t* bytes =
        blocks + k / kFp4Block * kFp4BlockBytes + kPanel + k % kFp4Block / 4 * kFp4RunBytes;
    __builtin_prefetch(bytes + kBlock / kFp4Block * kFp4BlockBytes);  // the panel's next 256 inputs
    decoder.run(bytes, [&](size_t i, const Vector* w) KERNEL_LAMBDA {
#pragma GCC unroll 4
      for (size_t v = 0; v < kPer16; ++v) {
        hn::Store(w[v], FloatTag(), decoded + (k + i) * kPanel + v * kWidth);
      }
    });
  }
}

// 256 decoded inputs against one group, chain by chain of 32.
template <int R>
KERNEL_FN void decoded_tile(const float* decoded, const uint8_t* blocks, const float* x,
                            size_t inputs, float* total) {
  for (size_t k = 0; k < inputs; k += kFp4Block) {
    Tile<R, 1> tile;
    tile.clear();
    for (size_t i = k; i < k + kFp4Block; ++i) {
      Vector w[kPer16];
      PanelRow<DType::kF32>::load(decoded + i * kPanel, w);
      tile.step(0, w, x + i * R);
    }
    add_scaled(tile, 0, blocks + k / kFp4Block * kFp4BlockBytes, total);
  }
}

// 256 inputs of one panel against every group.
KERNEL_FN void block_of_groups(const GemmPart& part, size_t panel, size_t k, float* decoded,
                               float* total) {
  const size_t inputs = std::min(kBlock, part.w->k() - k);
  const uint8_t* blocks =
      reinterpret_cast<const uint8_t*>(part.w->panel(panel)) + k / kFp4Block * kFp4BlockBytes;
  decode_block(blocks, inputs, decoded);
  for (size_t g = 0; g < part.group_count; ++g) {
    with_rows(part.groups[g].rows, [&]<int R>() {
      decoded_tile<R>(decoded, blocks, part.groups[g].x + k * R, inputs, total);
      total += R * kPanel;
    });
  }
}

void many_rows(const GemmPart& part, float* scratch) {
  float* decoded = scratch;
  float* sums = scratch + kBlock * kPanel;
  const RowGroup& last = part.groups[part.group_count - 1];
  const size_t rows = last.first_row + last.rows - part.groups[0].first_row;
  const size_t panels = part.panel_end - part.panel_begin, inputs = part.w->k();
  clear(sums, panels * rows * kPanel);
  constexpr size_t kStreamGroups =
      3;  // up to 18 rows stay in L2 whole: then each panel is one sequential stream
  if (part.group_count <= kStreamGroups) {
    for (size_t p = 0; p < panels; ++p) {
      for (size_t k = 0; k < inputs; k += kBlock) {
        block_of_groups(part, part.panel_begin + p, k, decoded, sums + p * rows * kPanel);
      }
    }
  } else {
    for (size_t k = 0; k < inputs; k += kBlock) {
      for (size_t p = 0; p < panels; ++p) {
        block_of_groups(part, part.panel_begin + p, k, decoded, sums + p * rows * kPanel);
      }
    }
  }
  for (size_t p = 0; p < panels; ++p) {
    const size_t column = (part.panel_begin + p) * kPanel;
    write_panel(sums + p * rows * kPanel, rows, part.w->n() - column,
                part.y + part.groups[0].first_row * part.y_ld + column, part.y_ld);
  }
}

void gemm_fp4_target(const GemmPart& part, float* scratch) {
  if (part.group_count == 1 && part.groups[0].rows <= 4) return few_rows(part, scratch);
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
