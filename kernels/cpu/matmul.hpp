// Matrix products over the pool: packs activations into row groups, cuts the work into parts, runs
// them on all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/ops.hpp"

namespace kernels::cpu {

// Rows to multiply: `index` (if set) names the row of x behind each of the `count` rows.
struct RowSource {
  Rows x;
  const uint32_t* index = nullptr;
  size_t count = 0;
  size_t width = 0;
};

// Packed rows as a range of the engine's groups; valid until the next pack().
struct PackedRows {
  size_t first_group = 0;
  size_t group_count = 0;
  size_t chunk_groups = 0;  // groups packed together: one call takes no others
};

// One product y[r] = W x[r].
struct Product {
  const Matrix* w = nullptr;
  PackedRows x;
  MutableRows y;
};

// Usage: pack() sets of rows, then run() any products of them. Invariant: buffers only
// grow.
class MatmulEngine {
 public:
  explicit MatmulEngine(ThreadPool& pool);

  // Forgets earlier rows and prepares `sources`; result i describes source i.
  std::span<const PackedRows> pack(std::span<const RowSource> sources);
  void run(std::span<const Product> products);

 private:
  struct PackTask {
    const RowSource* source;
    size_t group;
  };
  struct Part {
    uint32_t product, panel_begin, panel_end, group_begin, group_end;
  };

  void add_groups(const RowSource& source, float* target);
  void pack_group(const PackTask& task) const;
  void cut(std::span<const Product> products);

  ThreadPool& pool_;
  std::vector<RowGroup> groups_;
  std::vector<PackedRows> packed_;
  std::vector<PackTask> tasks_;
  std::vector<Part> parts_;
  Scratch rows_;
  float* rows_at_ = nullptr;  // of rows_
  std::vector<Scratch> thread_scratch_;
};

}  // namespace kernels::cpu
