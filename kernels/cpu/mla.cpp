#include "kernels/cpu/mla.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mla.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/mla_block.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// Lays the queries [q_latent | q_r] side by side.
void load_queries(const MlaAttention& a, const MlaTask& task, const Work& work) {
  const MlaArgs& args = *a.args;
  const size_t d = args.d_nope + args.d_rope;
  std::fill(work.query, work.query + work.padded * work.width, 0.0f);
  size_t index = 0;
  for (size_t row = task.row_begin; row < task.row_end; ++row) {
    const size_t batch_row = task.segment->row_begin + row;
    for (size_t head = task.head_begin; head < task.head_end; ++head, ++index) {
      const size_t group = index / 16 * 16, side = std::min<size_t>(16, work.padded - group);
      float* query = work.query + group * work.width + index % 16;
      const float* latent =
          a.q_latent + ((batch_row - a.first_row) * args.heads + head) * args.kv_lora;
      const float* rope = args.q.data + batch_row * args.q.ld + head * d + args.d_nope;
      for (size_t i = 0; i < args.kv_lora; ++i) query[i * side] = latent[i];
      query += args.kv_lora * side;
      for (size_t i = 0; i < args.d_rope; ++i) query[i * side] = rope[i];
    }
  }
}

// Sums of the positions [first, end) of one span into work.span.
void attend_span(const MlaAttention& a, const MlaTask& task, size_t first, size_t end,
                 size_t fetch_end, const Work& work, Lanes scale) {
  std::fill(work.span.out, work.span.out + work.padded * work.latent, 0.0f);
  std::fill(work.span.max, work.span.max + work.padded, -kInfinity);
  std::fill(work.span.sum, work.span.sum + work.padded, 0.0f);
  const size_t heads = task.head_end - task.head_begin;
  for (; first < end; first += kBlock) {
    Block block = load_block(a, *task.segment, first, end, fetch_end, work);
    const size_t least = task.segment->position + task.row_begin + 1;  // that the first row sees
    const bool masked = least < first + block.count;
    for (size_t q = 0; q < work.padded; ++q) {
      const size_t sees = std::max(first, least + q / heads) - first;
      work.visible[q] = static_cast<float>(std::min(sees, block.count));
    }
    score_block(work, block);
    work.for_groups([&](size_t query, size_t side) {
      if (masked) {
        softmax_group<true>(work, query, side, block.count, scale);
      } else {
        softmax_group<false>(work, query, side, block.count, scale);
      }
    });
    weigh_block(work, block, masked);
  }
}

// into <- merge(into, from) for one query.
void merge_query(const Partial& into, const Partial& from, size_t query, size_t latent) {
  const MergeFactors<Lanes> factors = merge_factors(Lanes(into.max[query]), Lanes(from.max[query]));
  const auto merged = [&](Lanes old_value, Lanes value) KERNEL_LAMBDA {
    return merge(old_value, value, factors.old_factor, factors.block_factor);
  };
  into.max[query] = factors.max.first();
  into.sum[query] = merged(Lanes(into.sum[query]), Lanes(from.sum[query])).first();
  float* to = into.out + query * latent;
  const float* add = from.out + query * latent;
  for (size_t i = 0; i < latent; i += kWidth)
    merged(Lanes::load(to + i), Lanes::load(add + i)).store(to + i);
}

// Positions that a query of the task sees.
size_t visible_to(const MlaTask& task, size_t query) {
  return task.segment->position + task.row_begin + query / (task.head_end - task.head_begin) + 1;
}

void store_output(const MlaAttention& a, const MlaTask& task, const Partial& total, size_t query,
                  size_t latent) {
  const size_t heads = task.head_end - task.head_begin, kv_lora = a.args->kv_lora;
  const size_t row = task.segment->row_begin + task.row_begin + query / heads - a.first_row;
  const float inverse = 1.0f / total.sum[query];
  const float* from = total.out + query * latent;
  float* to = a.out + (row * a.args->heads + task.head_begin + query % heads) * kv_lora;
  for (size_t i = 0; i < kv_lora; ++i) to[i] = from[i] * inverse;
}

void attend(const MlaAttention& a, const MlaTask& task, float* scratch) {
  Work work(*a.args, task, scratch);
  load_queries(a, task, work);
  const Lanes scale =
      math::inverse_sqrt(Lanes(static_cast<float>(a.args->d_nope + a.args->d_rope)));
  const size_t end = task.segment->position + task.row_end;  // positions the last row sees
  const size_t step = cpu::mla_partial_floats(*a.args, work.queries);
  for (size_t span = task.span_begin; span < task.span_end; ++span) {
    const bool shared = task.partials != nullptr;
    const Partial into = shared ? Partial(task.partials + span * step, work.padded, work.latent)
                         : span == 0 ? work.total
                                     : work.span;
    Work part = work;
    part.span = into;
    const size_t first = span * kAttentionSpan;
    attend_span(a, task, first, std::min<size_t>(end, first + kAttentionSpan),
                std::min<size_t>(end, task.span_end * kAttentionSpan), part, scale);
    for (size_t q = 0; !shared && span != 0 && q < work.queries; ++q) {
      if (visible_to(task, q) > first) merge_query(work.total, into, q, work.latent);
    }
  }
  if (task.partials != nullptr) return;
  for (size_t q = 0; q < work.queries; ++q) store_output(a, task, work.total, q, work.latent);
}

void finish(const MlaAttention& a, const MlaTask& task, size_t query) {
  const size_t queries = task.queries(), latent = cpu::mla_padded_width(a.args->kv_lora);
  const size_t step = cpu::mla_partial_floats(*a.args, queries);
  const auto partial = [&](size_t span) {
    return Partial(task.partials + span * step, cpu::mla_padded_queries(queries), latent);
  };
  const Partial total = partial(0);
  for (size_t span = 1; span * kAttentionSpan < visible_to(task, query); ++span)
    merge_query(total, partial(span), query, latent);
  store_output(a, task, total, query, latent);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(attend);
HWY_EXPORT(finish);

namespace cpu {

std::byte* mla_cache_row(const MlaArgs& args, const BatchView& batch, const Segment& segment,
                         size_t position) {
  const size_t page = batch.pages[segment.page_begin + position / args.page_tokens];
  const size_t row_bytes = (args.kv_lora + args.d_rope) * dtype_bytes(args.kv_dtype);
  return args.page_base + page * args.page_stride + args.layer_offset +
         position % args.page_tokens * row_bytes;
}

void mla_append(const MlaArgs& args, const float* ckv, std::byte* target, float* normed) {
  const size_t width = args.kv_lora + args.d_rope;
  rms_norm_row(ckv, args.kv_norm, args.kv_norm_eps, normed, args.kv_lora);
  std::copy(ckv + args.kv_lora, ckv + width, normed + args.kv_lora);
  if (args.kv_dtype == DType::kF32) {
    std::memcpy(target, normed, width * sizeof(float));
    return;
  }
  uint16_t* bits = reinterpret_cast<uint16_t*>(target);
  for (size_t i = 0; i < width; ++i) bits[i] = float_to_bf16(normed[i]);
}

uint32_t mla_spans(const Segment& segment, uint32_t row_end) {
  constexpr uint32_t kSpan = HWY_NAMESPACE::kAttentionSpan;
  return (segment.position + row_end + kSpan - 1) / kSpan;
}

size_t mla_partial_floats(const MlaArgs& args, size_t queries) {
  return mla_padded_queries(queries) * (mla_padded_width(args.kv_lora) + 2);
}

size_t mla_scratch(const MlaArgs& args) {
  const size_t width = args.kv_lora + args.d_rope;
  constexpr size_t kBlock = HWY_NAMESPACE::kAttentionBlock;
  return kMlaTaskQueries * (width + kBlock + 3) + 2 * mla_partial_floats(args, kMlaTaskQueries) +
         kBlock * (width + 32);
}

void mla_attend(const MlaAttention& attention, const MlaTask& task, float* scratch) {
  HWY_DYNAMIC_DISPATCH(attend)(attention, task, scratch);
}

void mla_finish(const MlaAttention& attention, const MlaTask& task, size_t query) {
  HWY_DYNAMIC_DISPATCH(finish)(attention, task, query);
}

}  // namespace cpu
}  // namespace kernels
#endif
