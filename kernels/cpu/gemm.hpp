// Products of packed rows with the panels of one matrix: the inner part of a matmul, compiled per
// SIMD target. Canonical order: one output is a sum over blocks of inputs (256, MXFP4 32); a block
// is one FMA chain from +0 in ascending order. SIMD runs over outputs, so neither the vector width
// nor the number of rows changes a sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matrix.hpp"

namespace kernels::cpu {

constexpr size_t kGroupRows = 6;  // rows of one register tile
constexpr size_t kChunkGroups =
    20;  // groups whose 256-input slices (6 KB each) stay in L2 beside their sums
constexpr size_t kChunkPanels = 16;  // panels per call: 256 outputs

// Up to kGroupRows rows, inputs first: x[k * rows + r]. One row is simply that row.
struct RowGroup {
  const float* x;
  uint32_t rows;
  uint32_t first_row;  // of y
};

// One call's worth: groups x panels of one matrix.
struct GemmPart {
  const PanelMatrix* w;
  const RowGroup* groups;  // at most kChunkGroups
  size_t group_count;
  size_t panel_begin, panel_end;  // at most kChunkPanels
  float* y;                       // y[row * y_ld + output]
  size_t y_ld;
};

// Floats of scratch one call needs: sums [panels][rows][16] and a decoded MXFP4 block [256][16].
constexpr size_t kGemmScratch = kChunkPanels * kChunkGroups * kGroupRows * kPanel + kBlock * kPanel;

void gemm_dense(const GemmPart& part, float* scratch);
void gemm_fp4(const GemmPart& part, float* scratch);

}  // namespace kernels::cpu
