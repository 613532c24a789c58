#include "kernels/cpu/matmul.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"

namespace kernels::cpu {
namespace {

const float* row_of(const RowSource& source, size_t i) {
  return source.x.data + (source.index == nullptr ? i : source.index[i]) * source.x.ld;
}

// Inputs first: target[k * rows + r].
void interleave(const RowSource& source, size_t first, size_t rows, float* target) {
  const float* row[kGroupRows];
  for (size_t r = 0; r < rows; ++r) row[r] = row_of(source, first + r);
  for (size_t k = 0; k < source.width; ++k) {
    for (size_t r = 0; r < rows; ++r) target[k * rows + r] = row[r][k];
  }
}

}  // namespace

MatmulEngine::MatmulEngine(ThreadPool& pool) : pool_(pool), thread_scratch_(pool.size()) {
  for (Scratch& scratch : thread_scratch_) scratch.reserve(kGemmScratch);
}

std::span<const PackedRows> MatmulEngine::pack(std::span<const RowSource> sources) {
  groups_.clear();
  packed_.clear();
  tasks_.clear();
  size_t floats = 0;
  for (const RowSource& source : sources) {
    if (source.count > 1) floats += source.count * source.width;
  }
  float* target = rows_.reserve(floats);
  for (const RowSource& source : sources) {
    const size_t count = (source.count + kGroupRows - 1) / kGroupRows;
    packed_.push_back({groups_.size(), count});
    // Groups differ by at most one row: 16 rows are 6 + 5 + 5, never 6 + 6 + 4 with its
    // latency-bound rest.
    for (size_t g = 0, row = 0; g < count; ++g) {
      const size_t rows =
          (source.count - row) / (count - g) + ((source.count - row) % (count - g) != 0);
      const auto first = static_cast<uint32_t>(row);
      const auto height = static_cast<uint32_t>(rows);
      if (source.count == 1) {
        groups_.push_back({row_of(source, 0), 1, 0});
      } else {
        groups_.push_back({target, height, first});
        tasks_.push_back({&source, target, first, height});
        target += rows * source.width;
      }
      row += rows;
    }
  }
  const auto pack_one = [&](size_t i, unsigned) {
    interleave(*tasks_[i].source, tasks_[i].first, tasks_[i].rows, tasks_[i].target);
  };
  constexpr size_t kSerialFloats = 16384;  // waking a thread costs about as much as moving these
  if (floats < kSerialFloats) {
    for (size_t i = 0; i < tasks_.size(); ++i) pack_one(i, 0);
  } else {
    pool_.parallel_for(tasks_.size(), pack_one);
  }
  return packed_;
}

// Parts are small enough to balance threads and long enough to stream: several per thread where
// there are panels enough.
void MatmulEngine::cut(std::span<const Product> products) {
  parts_.clear();
  size_t panels_all = 0;
  for (const Product& product : products) panels_all += (product.w->n() + kPanel - 1) / kPanel;
  const size_t share = panels_all / (pool_.size() * 8);
  const size_t step = std::clamp(share / 4 * 4, size_t{4}, kChunkPanels);
  for (size_t i = 0; i < products.size(); ++i) {
    const PackedRows& x = products[i].x;
    const size_t panels = (products[i].w->n() + kPanel - 1) / kPanel;
    for (size_t group = 0; group < x.group_count; group += kChunkGroups) {
      for (size_t panel = 0; panel < panels; panel += step) {
        parts_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(panel),
                          static_cast<uint32_t>(std::min(panel + step, panels)),
                          static_cast<uint32_t>(group),
                          static_cast<uint32_t>(std::min(group + kChunkGroups, x.group_count))});
      }
    }
  }
}

void MatmulEngine::run(std::span<const Product> products) {
  cut(products);
  pool_.parallel_for(parts_.size(), [&](size_t i, unsigned thread) {
    const Part& part = parts_[i];
    const Product& product = products[part.product];
    const auto& w = static_cast<const PanelMatrix&>(*product.w);
    const GemmPart gemm = {&w,
                           groups_.data() + product.x.first_group + part.group_begin,
                           part.group_end - part.group_begin,
                           part.panel_begin,
                           part.panel_end,
                           product.y.data,
                           product.y.ld};
    float* scratch = thread_scratch_[thread].reserve(kGemmScratch);
    if (w.dtype() == DType::kMXFP4) {
      gemm_fp4(gemm, scratch);
    } else {
      gemm_dense(gemm, scratch);
    }
  });
}

}  // namespace kernels::cpu
