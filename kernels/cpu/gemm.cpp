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

// One block of at most 256 inputs: R rows x P panels. Panels are `panel_step` stored values apart;
// kAhead > 0 prefetches that many bytes ahead.
template <DType kType, int R, int P, size_t kAhead>
KERNEL_FN void block_tile(const typename PanelRow<kType>::Stored* w, size_t panel_step,
                          const float* x, size_t inputs, float* total, size_t total_step,
                          bool first) {
  Tile<R, P> tile;
  tile.clear();
  for (size_t k = 0; k < inputs; ++k) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const auto* row = w + static_cast<size_t>(p) * panel_step + k * kPanel;
      if (kAhead > 0) __builtin_prefetch(reinterpret_cast<const char*>(row) + kAhead);
      Vector values[kPer16];
      PanelRow<kType>::load(row, values);
      tile.step(p, values, x + k * R);
    }
  }
  tile.add_to(total, total_step, first);
}

// One group of rows: every weight is used once, so panels stream from memory, P at a time.
template <DType kType, int R, int P>
KERNEL_FN void stream_panels(const GemmPart& part, size_t panel, float* total) {
  using Stored = typename PanelRow<kType>::Stored;
  const Stored* w = reinterpret_cast<const Stored*>(part.w->panel(panel));
  const size_t step = part.w->panel_bytes() / sizeof(Stored);
  const size_t inputs = part.w->k();
  const RowGroup& group = part.groups[0];
  for (size_t k = 0; k < inputs; k += kBlock) {
    block_tile<kType, R, P, 2048>(w + k * kPanel, step, group.x + k * R,
                                  std::min(kBlock, inputs - k), total, R * kPanel, k == 0);
  }
  for (size_t p = 0; p < P; ++p) {
    const size_t column = (panel + p) * kPanel;
    write_panel(total + p * R * kPanel, R, part.w->n() - column,
                part.y + group.first_row * part.y_ld + column, part.y_ld);
  }
}

template <DType kType>
void one_group(const GemmPart& part, float* scratch) {
  with_rows(part.groups[0].rows, [&]<int R>() {
    constexpr int kWide = R == 1 ? 4 : R <= 3 ? 2 : 1;  // at least 8 independent chains, at most 12
    size_t panel = part.panel_begin;
    for (; panel + kWide <= part.panel_end; panel += kWide)
      stream_panels<kType, R, kWide>(part, panel, scratch);
    for (; panel < part.panel_end; ++panel) stream_panels<kType, R, 1>(part, panel, scratch);
  });
}

// A block of one panel (8 KB of bf16) against every group. The first group fetches the panel's next
// block while this one is computed; the others find this one in L1.
template <DType kType>
KERNEL_FN void block_of_groups(const GemmPart& part, size_t panel, size_t k, float* total) {
  using Stored = typename PanelRow<kType>::Stored;
  const Stored* w = reinterpret_cast<const Stored*>(part.w->panel(panel)) + k * kPanel;
  const size_t inputs = std::min(kBlock, part.w->k() - k);
  for (size_t g = 0; g < part.group_count; ++g) {
    const RowGroup& group = part.groups[g];
    with_rows(group.rows, [&]<int R>() {
      constexpr size_t kNext = kBlock * kPanel * sizeof(Stored);
      const float* x = group.x + k * R;
      if (g == 0) {
        block_tile<kType, R, 1, kNext>(w, 0, x, inputs, total, 0, k == 0);
      } else {
        block_tile<kType, R, 1, 0>(w, 0, x, inputs, total, 0, k == 0);
      }
      total += R * kPanel;
    });
  }
}

template <DType kType>
void many_groups(const GemmPart& part, float* scratch) {
  const RowGroup& last = part.groups[part.group_count - 1];
  const size_t rows = last.first_row + last.rows - part.groups[0].first_row;
  const size_t panels = part.panel_end - part.panel_begin, inputs = part.w->k();
  constexpr size_t kStreamGroups =
      3;  // up to 18 rows stay in L2 whole: then each panel is one sequential stream
  if (part.group_count <= kStreamGroups) {
    for (size_t p = 0; p < panels; ++p) {
      for (size_t k = 0; k < inputs; k += kBlock) {
        block_of_groups<kType>(part, part.panel_begin + p, k, scratch + p * rows * kPanel);
      }
    }
  } else {
    for (size_t k = 0; k < inputs; k += kBlock) {
      for (size_t p = 0; p < panels; ++p) {
        block_of_groups<kType>(part, part.panel_begin + p, k, scratch + p * rows * kPanel);
      }
    }
  }
  for (size_t p = 0; p < panels; ++p) {
    const size_t column = (part.panel_begin + p) * kPanel;
    write_panel(scratch + p * rows * kPanel, rows, part.w->n() - column,
                part.y + part.groups[0].first_row * part.y_ld + column, part.y_ld);
  }
}

template <DType kType>
void gemm_of(const GemmPart& part, float* scratch) {
  if (part.group_count == 1) return one_group<kType>(part, scratch);
  many_groups<kType>(part, scratch);
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
