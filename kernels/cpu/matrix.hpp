// A weight matrix in panels of 16 outputs, each panel one sequential stream over the inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/ops.hpp"

namespace kernels::cpu {

class PanelMemory;
class ThreadPool;

constexpr size_t kPanel = 16;     // outputs
constexpr size_t kBlock = 256;    // inputs of one FMA chain (fp32, fp16, bf16)
constexpr size_t kFp4Block = 32;  // inputs under one MXFP4 scale, and of one FMA chain

// MXFP4 panel: for each block of 32 inputs 16 scale bytes, then 8 runs of 32 bytes. A run holds 4
// inputs k .. k+3: low nibbles k and k+1, high nibbles k+2 and k+3; byte 16 (c % 8 / 4) + 8 (k % 2)
// + 2 (c % 4) + c / 8 belongs to column c. So an interleave with the other half of a bf16 leaves
// columns c and c + 8 in one 32-bit word, as in a bf16 panel.
constexpr size_t kFp4RunBytes = 32;
constexpr size_t kFp4BlockBytes = kPanel + 8 * kFp4RunBytes;  // 272 B for 512 weights

// Panels: fp32 and fp16 [K][16]; bf16 [K][16] with columns j and j + 8 in one 32-bit word (j low, j
// + 8 high); outputs past n are zero. Invariant: data() is 64-byte aligned and panel p starts at
// data() + p * panel_bytes().
class PanelMatrix final : public Matrix {
 public:
  PanelMatrix(const MatrixView& view, PanelMemory& memory, ThreadPool& pool);

  size_t bytes() const override { return panel_count() * panel_bytes_; }
  size_t panel_count() const { return (n() + kPanel - 1) / kPanel; }
  size_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(size_t index) const { return data_.get() + index * panel_bytes_; }

 private:
  void pack_panel(const MatrixView& view, size_t index);

  size_t panel_bytes_;
  std::shared_ptr<std::byte> data_;  // a part of a run that other matrices share
};

}  // namespace kernels::cpu
