// Memory on a cache line, in huge pages where it is large: rows of activations lie kilobytes apart,
// so on small pages nearly every one of them costs a page walk.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace kernels {

struct FreeMemory {
  void operator()(void* p) const { std::free(p); }
};
using AlignedMemory = std::unique_ptr<void, FreeMemory>;

// The contents are undefined. Throws std::bad_alloc.
inline AlignedMemory allocate_aligned(size_t bytes) {
  constexpr size_t kLine = 64, kHugePage = size_t{2} << 20;
  const bool huge = bytes >= kHugePage;
  const size_t unit = huge ? kHugePage : kLine;
  const size_t size = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
  AlignedMemory memory(std::aligned_alloc(unit, size));
  if (memory == nullptr) throw std::bad_alloc();
  if (huge) ::madvise(memory.get(), size, MADV_HUGEPAGE);  // advice: a refusal costs nothing
  return memory;
}

}  // namespace kernels
