#include "kernels/cpu/panel_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace kernels::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRun = size_t{64} << 20;  // untouched parts cost only addresses

// Mapped, so zero; begins on a huge page.
std::shared_ptr<std::byte> map_run(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  void* memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const size_t past = reinterpret_cast<uintptr_t>(memory) % kHugePage;
  std::byte* begin = static_cast<std::byte*>(memory) + (past == 0 ? 0 : kHugePage - past);
  ::madvise(begin, bytes, MADV_HUGEPAGE);
  return {begin, [memory, mapped](std::byte*) { ::munmap(memory, mapped); }};
}

}  // namespace

std::shared_ptr<std::byte> PanelMemory::take(size_t bytes) {
  if (run_ == nullptr || size_ - used_ < bytes) {
    size_ = std::max(kRun, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    run_ = map_run(size_);
    used_ = 0;
  }
  std::byte* const begin = run_.get() + used_;
  used_ = std::min(size_, used_ + (bytes + 63) / 64 * 64);
  return {run_, begin};
}

}  // namespace kernels::cpu
