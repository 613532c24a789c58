// The routed experts of a batch: rows grouped by expert, so that an expert's weights are read once
// for all its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/ops.hpp"

namespace kernels::cpu {

class ExpertEngine {
 public:
  ExpertEngine(ThreadPool& pool, MatmulEngine& matmul) : pool_(pool), matmul_(matmul) {}

  void run(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
           const ActivationSpec& act, MutableRows out, size_t rows);

 private:
  // The (row, choice) pairs of one expert: places [begin, end) of the arrays below.
  struct Group {
    uint32_t expert, begin, end;
  };

  void run_chunk(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
                 const ActivationSpec& act, MutableRows out, size_t first_row, size_t rows);
  void group_rows(const Routing& routing, size_t experts, size_t first_row, size_t rows);

  ThreadPool& pool_;
  MatmulEngine& matmul_;
  std::vector<uint32_t> count_;  // [experts]
  std::vector<Group> groups_;
  std::vector<uint32_t> row_at_;  // [pairs] batch row of a place
  std::vector<uint32_t> place_;   // [rows, top_k] place of a pair
  std::vector<RowSource> sources_;
  std::vector<Product> products_;
  Scratch gate_, up_, result_;
};

}  // namespace kernels::cpu
