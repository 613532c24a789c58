#include "kernels/cpu/mla_engine.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/row_loop.hpp"
#include "kernels/cpu/rows.hpp"

namespace kernels::cpu {
namespace {

constexpr size_t kBufferFloats = size_t{8} << 20;  // 32 MB for each of the two latent buffers
constexpr size_t kTaskHeads = 16;
// Query rows and heads of a task: enough that the rows of a block are read often, few enough that
// the sums stay in the second-level cache beside the block.
constexpr size_t kTaskQueries = 64;
static_assert(kTaskQueries <= kMlaTaskQueries);

}  // namespace

void MlaEngine::run(const MlaArgs& args, const BatchView& batch) {
  VERIFY(args.page_tokens >= 1 && (args.page_tokens & (args.page_tokens - 1)) == 0);
  VERIFY(args.kv_dtype == DType::kF32 || args.kv_dtype == DType::kBF16);
  VERIFY(args.absorb_k.size() == args.heads && args.absorb_v.size() == args.heads);
  append(args, batch);
  const auto step = static_cast<uint32_t>(
      std::max<size_t>(kGroupRows, kBufferFloats / (args.heads * args.kv_lora)));
  for (uint32_t row = 0; row < batch.row_count; row += step)
    run_rows(args, batch, row, std::min(step, batch.row_count - row));
}

void MlaEngine::append(const MlaArgs& args, const BatchView& batch) {
  const size_t width = args.kv_lora + args.d_rope;
  for (const Segment& segment : batch.segments) {
    for_rows(pool_, segment.row_count, width, [&](size_t row, unsigned thread) {
      if (segment.position + row < segment.write_from) return;
      mla_append(args, args.ckv.data + (segment.row_begin + row) * args.ckv.ld,
                 mla_cache_row(args, batch, segment, segment.position + row),
                 scratch_[thread].reserve(width));
    });
  }
}

// y[r] of head h = matrices[h] x[r] of head h; heads lie `step` floats apart.
void MlaEngine::fold(std::span<const MatrixPtr> matrices, Rows x, size_t x_step, MutableRows y,
                     size_t y_step, size_t rows) {
  sources_.clear();
  for (size_t head = 0; head < matrices.size(); ++head)
    sources_.push_back({{x.data + head * x_step, x.ld}, nullptr, rows, matrices[head]->k()});
  const std::span<const PackedRows> packed = matmul_.pack(sources_);
  products_.clear();
  for (size_t head = 0; head < matrices.size(); ++head)
    products_.push_back({matrices[head].get(), packed[head], {y.data + head * y_step, y.ld}});
  matmul_.run(products_);
}

// Attention for batch rows [first_row, first_row + rows); every row of the batch is already in the
// cache.
void MlaEngine::run_rows(const MlaArgs& args, const BatchView& batch, uint32_t first_row,
                         uint32_t rows) {
  const size_t row_floats = args.heads * args.kv_lora;
  const MutableRows query = {query_.reserve(rows * row_floats), row_floats};
  const MutableRows latent = {out_.reserve(rows * row_floats), row_floats};
  fold(args.absorb_k, {args.q.data + first_row * args.q.ld, args.q.ld}, args.d_nope + args.d_rope,
       query, args.kv_lora, rows);
  cut(args, batch, first_row, rows);
  attend({&args, &batch, first_row, query.data, latent.data});
  const MutableRows out = {args.out.data + first_row * args.out.ld, args.out.ld};
  fold(args.absorb_v, latent, args.kv_lora, out, args.d_v, rows);
  if (args.gate == nullptr) return;
  for_rows(pool_, rows, args.heads * args.d_v, [&](size_t row, unsigned) {
    sigmoid_gate_row(args.gate->data + (first_row + row) * args.gate->ld, out.data + row * out.ld,
                     args.heads * args.d_v);
  });
}

// Rows of a sequence share a pass over its pages, and so do heads.
void MlaEngine::cut(const MlaArgs& args, const BatchView& batch, uint32_t first_row,
                    uint32_t rows) {
  tasks_.clear();
  shared_.clear();
  partial_floats_ = 0;
  const auto heads = static_cast<uint32_t>(std::min(kTaskHeads, args.heads));
  const auto task_rows = static_cast<uint32_t>(kTaskQueries / heads);
  for (const Segment& segment : batch.segments) {
    const uint32_t begin = std::max(segment.row_begin, first_row);
    const uint32_t end = std::min(segment.row_begin + segment.row_count, first_row + rows);
    for (uint32_t row = begin; row < end; row += task_rows) {
      for (uint32_t head = 0; head < args.heads; head += heads) {
        MlaTask task = {};
        task.segment = &segment;
        task.row_begin = row - segment.row_begin;
        task.row_end = std::min(row + task_rows, end) - segment.row_begin;
        task.head_begin = head;
        task.head_end = std::min<uint32_t>(head + heads, static_cast<uint32_t>(args.heads));
        task.span_end = mla_spans(segment, task.row_end);
        // The few rows of a decode: the threads share the positions of each. A long prefill has
        // rows enough.
        const uint32_t parts = end - begin <= task_rows ? 4 * pool_.size() : 1;
        add_tasks(task, parts, mla_partial_floats(args, task.queries()));
      }
    }
  }
}

// Cuts a task's spans into at most `parts` tasks.
void MlaEngine::add_tasks(const MlaTask& all, uint32_t parts, size_t partial_floats) {
  const uint32_t spans = all.span_end;
  if (pool_.size() == 1 || parts == 1 || spans == 1) {
    tasks_.push_back(all);
    return;
  }
  const auto task_begin = static_cast<uint32_t>(tasks_.size());
  const uint32_t step = (spans + parts - 1) / parts;
  for (uint32_t span = 0; span < spans; span += step) {
    tasks_.push_back(all);
    tasks_.back().span_begin = span;
    tasks_.back().span_end = std::min(span + step, spans);
  }
  shared_.push_back({task_begin, static_cast<uint32_t>(tasks_.size()), partial_floats_});
  partial_floats_ += spans * partial_floats;
}

void MlaEngine::attend(const MlaAttention& attention) {
  finishes_.clear();
  float* partials = partials_.reserve(partial_floats_);
  for (const Shared& shared : shared_) {
    for (uint32_t i = shared.task_begin; i < shared.task_end; ++i)
      tasks_[i].partials = partials + shared.offset;
    for (uint32_t q = 0; q < tasks_[shared.task_begin].queries(); ++q)
      finishes_.push_back({shared.task_begin, q});
  }
  const size_t floats = mla_scratch(*attention.args);
  pool_.parallel_for(tasks_.size(), [&](size_t i, unsigned thread) {
    mla_attend(attention, tasks_[i], scratch_[thread].reserve(floats));
  });
  pool_.parallel_for(finishes_.size(), [&](size_t i, unsigned) {
    mla_finish(attention, tasks_[finishes_[i].task], finishes_[i].query);
  });
}

}  // namespace kernels::cpu
