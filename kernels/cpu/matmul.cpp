#include "kernels/cpu/matmul.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/interleave.hpp"

namespace kernels::cpu {
namespace {

size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

const float* row_of(const RowSource& source, size_t i) {
  return source.x.data + (source.index == nullptr ? i : source.index[i]) * source.x.ld;
}

// Floats of the packed rows of one source: whole blocks of 256 inputs.
size_t packed_floats(const RowSource& source) {
  return source.count == 1 ? 0 : source.count * ceil_div(source.width, kBlock) * kBlock;
}

}  // namespace

MatmulEngine::MatmulEngine(ThreadPool& pool) : pool_(pool), thread_scratch_(pool.size()) {
  for (Scratch& scratch : thread_scratch_) scratch.reserve(kGemmScratch);
}

// Groups differ by at most one row (16 rows are 6 + 5 + 5), but none has 4 beside others: with 8
// chains its tile waits for its own sums, while one of 3 takes two panels at once and has 12. So 8
// rows are 5 + 3.
void MatmulEngine::add_groups(const RowSource& source, float* target) {
  const size_t count = ceil_div(source.count, kGroupRows);
  const size_t chunk_groups = ceil_div(count, ceil_div(count, kChunkGroups));
  packed_.push_back({groups_.size(), count, chunk_groups});
  if (source.count == 1) {
    groups_.push_back({row_of(source, 0), kBlock, 1, 0});
    return;
  }
  const size_t blocks = ceil_div(source.width, kBlock);
  const size_t short_rows = source.count / count == 4 && count > 1 ? 3 : 0;  // of the last group
  const size_t even_groups = count - (short_rows != 0), even_rows = source.count - short_rows;
  const auto row_at = [&](size_t group) {  // the first even_rows % even_groups have one row more
    if (group > even_groups) return source.count;
    return group * (even_rows / even_groups) + std::min(group, even_rows % even_groups);
  };
  for (size_t begin = 0; begin < count; begin += chunk_groups) {
    const size_t end = std::min(begin + chunk_groups, count);
    const size_t first = row_at(begin), step = (row_at(end) - first) * kBlock;
    for (size_t g = begin; g < end; ++g) {
      const size_t row = row_at(g);
      tasks_.push_back({&source, groups_.size()});
      groups_.push_back({target + (row - first) * kBlock, step,
                         static_cast<uint32_t>(row_at(g + 1) - row), static_cast<uint32_t>(row)});
    }
    target += step * blocks;
  }
}

void MatmulEngine::pack_group(const PackTask& task) const {
  const RowGroup& group = groups_[task.group];
  const RowSource& source = *task.source;
  float* target = rows_at_ + (group.x - rows_at_);
  const float* row[kGroupRows];
  for (size_t r = 0; r < group.rows; ++r) row[r] = row_of(source, group.first_row + r);
  for (size_t k = 0; k < source.width; k += kBlock, target += group.block_step) {
    interleave_rows(row, group.rows, std::min(kBlock, source.width - k), target);
    for (size_t r = 0; r < group.rows; ++r) row[r] += kBlock;
  }
}

std::span<const PackedRows> MatmulEngine::pack(std::span<const RowSource> sources) {
  groups_.clear();
  packed_.clear();
  tasks_.clear();
  size_t floats = 0;
  for (const RowSource& source : sources) floats += packed_floats(source);
  rows_at_ = rows_.reserve(floats);
  float* target = rows_at_;
  for (const RowSource& source : sources) {
    add_groups(source, target);
    target += packed_floats(source);
  }
  constexpr size_t kSerialFloats = 16384;  // waking a thread costs about as much as moving these
  if (floats < kSerialFloats) {
    for (const PackTask& task : tasks_) pack_group(task);
  } else {
    pool_.parallel_for(tasks_.size(), [&](size_t i, unsigned) { pack_group(tasks_[i]); });
  }
  return packed_;
}

// Parts get smaller towards the end, so that most weights are long streams and threads still end
// together. Those of one run of panels follow each other, so that its weights come from memory once
// for all rows.
void MatmulEngine::cut(std::span<const Product> products) {
  parts_.clear();
  size_t left = 0;  // panels times chunks of rows
  for (const Product& product : products) {
    left +=
        ceil_div(product.w->n(), kPanel) * ceil_div(product.x.group_count, product.x.chunk_groups);
  }
  const size_t least = left / pool_.size();
  for (size_t i = 0; i < products.size(); ++i) {
    const PackedRows& x = products[i].x;
    const size_t panels = ceil_div(products[i].w->n(), kPanel);
    // As many panels as the kernel takes together, unless that leaves a thread without work.
    const size_t rows = groups_[x.first_group].rows;
    const size_t together = std::clamp<size_t>(least, 1, x.group_count > 1 ? 1 : rows == 1 ? 4 : 2);
    const size_t most = kChunkPanels * (x.group_count > 1 ? 1 : kChunkGroups);
    for (size_t panel = 0; panel < panels;) {
      const size_t share = left / (2 * pool_.size()) / together * together;
      const size_t end = std::min(panel + std::clamp(share, together, most), panels);
      for (size_t group = 0; group < x.group_count; group += x.chunk_groups) {
        parts_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(panel),
                          static_cast<uint32_t>(end), static_cast<uint32_t>(group),
                          static_cast<uint32_t>(std::min(group + x.chunk_groups, x.group_count))});
        left -= end - panel;
      }
      panel = end;
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
