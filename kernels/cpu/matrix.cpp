#include "kernels/cpu/matrix.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/panel_memory.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace kernels::cpu {
namespace {

size_t panel_bytes_of(const MatrixView& view) {
  if (view.dtype == DType::kMXFP4) {
    VERIFY(view.k % kFp4Block == 0);
    return view.k / kFp4Block * kFp4BlockBytes;
  }
  return view.k * kPanel * dtype_bytes(view.dtype);
}

// Position of column c inside a row of a bf16 panel.
size_t bf16_slot(size_t c) { return c % 8 * 2 + c / 8; }

template <class T, class Slot>
void pack_rows(const MatrixView& view, size_t first, size_t count, std::byte* target, Slot slot) {
  const T* source = static_cast<const T*>(view.data);
  T* out = reinterpret_cast<T*>(target);
  for (size_t c = 0; c < count; ++c) {
    const T* row = source + (first + c) * view.stride_n;
    T* column = out + slot(c);
    for (size_t k = 0; k < view.k; ++k) column[k * kPanel] = row[k * view.stride_k];
  }
}

void pack_fp4(const MatrixView& view, size_t first, size_t count, std::byte* target) {
  const uint8_t* source = static_cast<const uint8_t*>(view.data);
  uint8_t* out = reinterpret_cast<uint8_t*>(target);
  const size_t blocks = view.k / kFp4Block;
  for (size_t c = 0; c < count; ++c) {
    for (size_t b = 0; b < blocks; ++b) {
      uint8_t* block = out + b * kFp4BlockBytes;
      block[c] = view.scale[(first + c) * blocks + b];
      const uint8_t* pairs = source + (first + c) * (view.k / 2) + b * (kFp4Block / 2);
      uint8_t* column = block + kPanel + c % 8 / 4 * 16 + c % 4 * 2 + c / 8;
      for (size_t run = 0; run < 8; ++run) {
        const unsigned k01 = pairs[run * 2], k23 = pairs[run * 2 + 1];
        uint8_t* at = column + run * kFp4RunBytes;
        at[0] = static_cast<uint8_t>((k01 & 15u) | (k23 & 15u) << 4);
        at[8] = static_cast<uint8_t>(k01 >> 4 | (k23 & 0xf0u));
      }
    }
  }
}

}  // namespace

PanelMatrix::PanelMatrix(const MatrixView& view, PanelMemory& memory, ThreadPool& pool)
    : Matrix(view.dtype, view.n, view.k), panel_bytes_(panel_bytes_of(view)) {
  VERIFY(view.n > 0);
  VERIFY(view.k > 0);
  VERIFY(view.data != nullptr);
  VERIFY(view.dtype != DType::kMXFP4 || view.scale != nullptr);
  VERIFY(view.dtype != DType::kU8);
  data_ = memory.take(bytes());
  pool.parallel_for(panel_count(), [&](size_t index, unsigned) { pack_panel(view, index); });
}

void PanelMatrix::pack_panel(const MatrixView& view, size_t index) {
  const size_t first = index * kPanel;
  const size_t count = std::min(kPanel, view.n - first);
  std::byte* target =
      data_.get() + index * panel_bytes_;  // zeroed memory: columns past n stay zero
  switch (view.dtype) {
    case DType::kF32:
      return pack_rows<uint32_t>(view, first, count, target, [](size_t c) { return c; });
    case DType::kF16:
      return pack_rows<uint16_t>(view, first, count, target, [](size_t c) { return c; });
    case DType::kBF16:
      return pack_rows<uint16_t>(view, first, count, target, bf16_slot);
    case DType::kMXFP4:
      return pack_fp4(view, first, count, target);
    case DType::kU8:
      return;
  }
}

}  // namespace kernels::cpu
