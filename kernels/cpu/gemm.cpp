#include "kernels/cpu/gemm.hpp"

#include <algorithm>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::GemmPart;
using cpu::kBlock;
using cpu::kPanel;
using cpu::RowGroup;

// What a tile fetches before it is needed.
enum class Fetch {
  kNothing,
  kNear,  // weights `ahead` bytes on, into L1
  kFar,   // the same into L2: too many rows pass through L1 before they are used
};

// One block of at most 256 inputs: R rows x P panels. Panels are `panel_step` stored values apart.
// kManyRows: the next group's inputs, which follow this one's, are fetched as well.
template <DType kType, int R, int P, Fetch kFetch, bool kManyRows>
KERNEL_FN void block_tile(const typename PanelRow<kType>::Stored* w, size_t panel_step,
                          ptrdiff_t ahead, const float* x, size_t inputs, float* total,
                          size_t total_step, bool first) {
  Tile<R, P> tile;
  tile.clear();
#pragma GCC unroll 2
  for (size_t k = 0; k < inputs; ++k) {
    if constexpr (kManyRows) __builtin_prefetch(x + (kBlock + k) * R);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const auto* row = w + static_cast<size_t>(p) * panel_step + k * kPanel;
      const char* next = reinterpret_cast<const char*>(row) + ahead;
      if constexpr (kFetch == Fetch::kNear) __builtin_prefetch(next);
      if constexpr (kFetch == Fetch::kFar) __builtin_prefetch(next, 0, 2);
      Vector values[kPer16];
      PanelRow<kType>::load(row, values);
      tile.step(p, values, x + k * R);
    }
  }
  tile.add_to(total, total_step, first);
}

// One group of rows: every weight is used once, so panels stream from memory, P at a time. A single
// stream has to be asked for further ahead than two, which then get in their own way.
template <DType kType, int R, int P>
KERNEL_FN void stream_panels(const GemmPart& part, size_t panel, float* total) {
  using Stored = typename PanelRow<kType>::Stored;
  constexpr ptrdiff_t kAhead = P == 1 ? 2048 : 512;
  const RowGroup& group = part.groups[0];
  const Stored* w = reinterpret_cast<const Stored*>(part.w->panel(panel));
  const size_t step = part.w->panel_bytes() / sizeof(Stored), inputs = part.w->k();
  const float* x = group.x;
  for (size_t k = 0; k < inputs; k += kBlock, x += group.block_step) {
    block_tile<kType, R, P, Fetch::kNear, false>(
        w + k * kPanel, step, kAhead, x, std::min(kBlock, inputs - k), total, R * kPanel, k == 0);
  }
  write_panels(part, total, R, panel, P);
}

// One row: four panels side by side, each line of them fetched once, 512 bytes before it is used.
// Four streams keep the hardware's prefetchers busy; requests that are more or further ahead get in
// their way. Where a stream ends it goes on in the next four panels.
template <DType kType>
KERNEL_FN void stream_row(const GemmPart& part, size_t panel, float* total) {
  using Stored = typename PanelRow<kType>::Stored;
  constexpr int kPanels = 4;
  constexpr size_t kRowBytes = kPanel * sizeof(Stored), kAhead = 512, kLineInputs = 64 / kRowBytes;
  const size_t step = part.w->panel_bytes(), inputs = part.w->k();
  const std::byte* const w = part.w->panel(panel);
  const float* x = part.groups[0].x;  // a single row is not packed
  for (size_t first = 0; first < inputs; first += kBlock) {
    const size_t end = std::min(first + kBlock, inputs);
    Tile<1, kPanels> tile;
    tile.clear();
    const auto input = [&](size_t k, bool fetch) KERNEL_LAMBDA {
      const size_t ahead = kAhead + (k * kRowBytes + kAhead < step ? 0 : (kPanels - 1) * step);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* row = w + static_cast<size_t>(p) * step + k * kRowBytes;
        if (fetch) __builtin_prefetch(row + ahead);
        Vector values[kPer16];
        PanelRow<kType>::load(reinterpret_cast<const Stored*>(row), values);
        tile.step(p, values, x + k);
      }
    };
    size_t k = first;
    for (; k + kLineInputs <= end; k += kLineInputs) {
      input(k, true);
      if constexpr (kLineInputs == 2) input(k + 1, false);
    }
    for (; k < end; ++k) input(k, true);
    tile.add_to(total, kPanel, first == 0);
  }
  write_panels(part, total, 1, panel, kPanels);
}

template <DType kType>
void one_group(const GemmPart& part, float* scratch) {
  with_rows(part.groups[0].rows, [&]<int R>() {
    constexpr int kWide = R == 1 ? 4 : R <= 3 ? 2 : 1;  // at least 8 independent chains, at most 12
    size_t panel = part.panel_begin;
    for (; panel + kWide <= part.panel_end; panel += kWide) {
      if constexpr (R == 1) {
        stream_row<kType>(part, panel, scratch);
      } else {
        stream_panels<kType, R, kWide>(part, panel, scratch);
      }
    }
    for (; panel < part.panel_end; ++panel) stream_panels<kType, R, 1>(part, panel, scratch);
  });
}

// A block of one panel (8 KB of bf16) or two against every group. One group fetches the block after
// it meanwhile: the first, or where two panels fill L1 the last, which no longer needs this one.
template <DType kType>
void block_of_groups(const GemmPart& part, const PanelBlock& at, float* total) {
  using Stored = typename PanelRow<kType>::Stored;
  constexpr auto kBlockBytes = static_cast<ptrdiff_t>(kBlock * kPanel * sizeof(Stored));
  const ptrdiff_t ahead = at.panels_ahead * static_cast<ptrdiff_t>(part.w->panel_bytes()) +
                          at.blocks_ahead * kBlockBytes;
  const size_t k = at.block * kBlock, inputs = std::min(kBlock, part.w->k() - k);
  const size_t step = part.w->panel_bytes() / sizeof(Stored), sums = part.rows() * kPanel;
  const Stored* w = reinterpret_cast<const Stored*>(part.w->panel(at.panel)) + k * kPanel;
  for (size_t g = 0; g < part.group_count; ++g) {
    const RowGroup& group = part.groups[g];
    const float* x = group.x + at.block * group.block_step;
    with_rows(group.rows, [&]<int R>() {
      if constexpr (R == kPairRows) {
        if (at.panels == 2) {
          block_tile<kType, R, 2, Fetch::kNear, true>(w, step, ahead, x, inputs, total, sums,
                                                      k == 0);
          return;
        }
      }
      for (size_t p = 0; p < at.panels; ++p) {
        const Stored* const panel = w + p * step;
        float* const to = total + p * sums;
        if (g != 0 || at.panels == 2) {
          block_tile<kType, R, 1, Fetch::kNothing, true>(panel, 0, 0, x, inputs, to, 0, k == 0);
        } else if (part.group_count <= 3) {
          block_tile<kType, R, 1, Fetch::kNear, true>(panel, 0, ahead, x, inputs, to, 0, k == 0);
        } else {
          block_tile<kType, R, 1, Fetch::kFar, true>(panel, 0, ahead, x, inputs, to, 0, k == 0);
        }
      }
    });
    total += group.rows * kPanel;
  }
}

template <DType kType>
void gemm_of(const GemmPart& part, float* scratch) {
  if (part.group_count == 1) return one_group<kType>(part, scratch);
  sweep_blocks(part, scratch, [&](const PanelBlock& at, float* total) {
    block_of_groups<kType>(part, at, total);
  });
}

void gemm_dense_target(const GemmPart& part, float* scratch) {
  switch (part.w->dtype()) {
    case DType::kF32:
      return gemm_of<DType::kF32>(part, scratch);
    case DType::kF16:
      return gemm_of<DType::kF16>(part, scratch);
    default:
      return gemm_of<DType::kBF16>(part, scratch);
  }
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(gemm_dense_target);

void cpu::gemm_dense(const GemmPart& part, float* scratch) {
  HWY_DYNAMIC_DISPATCH(gemm_dense_target)(part, scratch);
}
}  // namespace kernels
#endif
