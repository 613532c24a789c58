// Memory for packed weights: matrices lie side by side in large mapped runs of huge pages. A matrix
// of a few hundred KB with pages of its own would have 4 KB ones, and a weight stream that changes
// page every 4 KB waits for translations and loses its prefetcher.
#pragma once

#include <cstddef>
#include <memory>

namespace kernels::cpu {

class PanelMemory {
 public:
  // `bytes` zeroed bytes, 64-byte aligned; the run stays mapped as long as something in it is held.
  // Throws std::bad_alloc. One thread calls at a time.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  std::shared_ptr<std::byte> run_;
  size_t used_ = 0, size_ = 0;  // bytes of run_
};

}  // namespace kernels::cpu
