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

// Up to kGroupRows rows, inputs first: input k of row r at x[k / 256 * block_step + k % 256 * rows
// + r]. The slices of the groups of one call follow each other, so that a sweep over them is one
// stream.
struct RowGroup {
  const float* x;
  size_t block_step;  // floats
  uint32_t rows;
  uint32_t first_row;  // of y
};

// One call's worth: groups x panels of one matrix.
struct GemmPart {
  const PanelMatrix* w;
  const RowGroup* groups;  // at most kChunkGroups
  size_t group_count;
  size_t panel_begin, panel_end;  // at most kChunkPanels; of one group x kChunkGroups
  float* y;                       // y[row * y_ld + output]
  size_t y_ld;

  size_t rows() const {
    const RowGroup& last = groups[group_count - 1];
    return last.first_row + last.rows - groups[0].first_row;
  }
};

// An MXFP4 block decoded: [256][16] weights and [8][16] scales.
constexpr size_t kDecodedBlockFloats = kBlock * kPanel + kBlock / kFp4Block * kPanel;

// Floats of scratch one call needs: sums [panels][rows][16] and a decoded block.
constexpr size_t kGemmScratch =
    kChunkPanels * kChunkGroups * kGroupRows * kPanel + kDecodedBlockFloats;

void gemm_dense(const GemmPart& part, float* scratch);
void gemm_fp4(const GemmPart& part, float* scratch);

}  // namespace kernels::cpu
