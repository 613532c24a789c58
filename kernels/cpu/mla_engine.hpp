// Absorbed MLA of a batch: appends its rows to the cache, folds the queries into latent space,
// cuts the attention into tasks, folds the result out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/mla.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/ops.hpp"

namespace kernels::cpu {

class MlaEngine {
 public:
  MlaEngine(ThreadPool& pool, MatmulEngine& matmul)
      : pool_(pool), matmul_(matmul), scratch_(pool.size()) {}

  void run(const MlaArgs& args, const BatchView& batch);

 private:
  void append(const MlaArgs& args, const BatchView& batch);
  void run_rows(const MlaArgs& args, const BatchView& batch, uint32_t first_row, uint32_t rows);
  void fold(std::span<const MatrixPtr> matrices, Rows x, size_t x_step, MutableRows y,
            size_t y_step, size_t rows);
  void cut(const MlaArgs& args, const BatchView& batch, uint32_t first_row, uint32_t rows);
  void add_tasks(const MlaTask& all, uint32_t parts, size_t partial_floats);
  void attend(const MlaAttention& attention);

  ThreadPool& pool_;
  MatmulEngine& matmul_;
  std::vector<Scratch> scratch_;  // one per thread
  Scratch query_, out_, partials_;
  size_t partial_floats_ = 0;  // of all tasks that share sums
  std::vector<MlaTask> tasks_;
  struct Shared {  // tasks that share sums, and the offset of those in partials_
    uint32_t task_begin, task_end;
    size_t offset;
  };
  std::vector<Shared> shared_;
  struct Finish {
    uint32_t task, query;
  };
  std::vector<Finish> finishes_;
  std::vector<RowSource> sources_;
  std::vector<Product> products_;
};

}  // namespace kernels::cpu
