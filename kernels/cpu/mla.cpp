#include "kernels/cpu/mla.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mla.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/mla_tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::kMlaTaskQueries;
using cpu::MlaAttention;
using cpu::MlaTask;

constexpr size_t kBlock = kAttentionBlock;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

size_t padded(size_t width) { return (width + 15) / 16 * 16; }

// What some positions add up to, for each query of a task.
struct Partial {
  float* out;  // [queries][latent]
  float* max;  // [queries], as is sum
  float* sum;

  // `queries` is a multiple of 8.
  Partial(float* floats, size_t queries, size_t latent)
      : out(floats), max(out + queries * latent), sum(max + queries) {}
};

// Queries are scored in groups of 16, and a last one of 8; the queries of a group lie side by side.
struct Work {
  size_t queries;     // rows times heads of the task, a row's heads together
  size_t padded;      // up to a multiple of 8
  size_t width;       // kv_lora + d_rope
  size_t latent;      // kv_lora up to a multiple of 16
  float* query;       // [groups][width][16 or 8]
  float* score;       // [groups][kBlock][16 or 8]: scores, then softmax numerators
  float* visible;     // [queries]: positions of the block that each query sees
  float* old_factor;  // [queries], as is block_factor: of the block's merge
  float* block_factor;
  Partial span, total;
  float* copy;  // [kBlock][copy_stride] of a block whose stored rows cannot be read in place

  Work(const MlaArgs& args, const MlaTask& task, float* scratch)
      : queries(task.queries()),
        padded((queries + 7) / 8 * 8),
        width(args.kv_lora + args.d_rope),
        latent((args.kv_lora + 15) / 16 * 16),
        query(scratch),
        score(query + padded * width),
        visible(score + padded * kBlock),
        old_factor(visible + padded),
        block_factor(old_factor + padded),
        span(block_factor + padded, padded, latent),
        total(span.sum + padded, padded, latent),
        copy(total.sum + padded) {}

  // fn(first query, queries side by side)
  template <class Fn>
  KERNEL_FN void for_groups(const Fn& fn) const {
    size_t first = 0;
    for (; first + 16 <= padded; first += 16) fn(first, size_t{16});
    if (first < padded) fn(first, size_t{8});
  }
};

// The rows of one block, and the memory of the next: it is fetched evenly over this one's
// arithmetic, so that neither waits for the other.
struct Block {
  const float* rows;
  size_t stride;
  size_t count;  // positions of the block that the task's last row sees
  Fetch ahead;

  KERNEL_FN Fetch take(size_t turns) {
    const Fetch fetch = ahead;
    ahead.at += turns * ahead.step;
    return fetch;
  }
};

KERNEL_FN void widen_bf16(const uint16_t* from, float* to, size_t count) {
  const hn::Rebind<uint16_t, WordTag> half;
  size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(WordTag(), hn::LoadU(half, from + i)));
    Lanes(hn::BitCast(FloatTag(), bits)).store(to + i);
  }
  for (; i < count; ++i) to[i] = bf16_to_float(from[i]);
}

size_t copy_stride(size_t width) { return padded(width) + 16; }  // never a power of two

// About how many times the tiles of a block call Fetch::one().
size_t turns(const Work& work) {
  const size_t score = work.padded * kBlock * work.width / (4 * 12 * kWidth);
  const size_t weigh = work.padded * kBlock * work.latent / (4 * 3 * kWidth);
  return score + weigh + 1;
}

// Positions [first, ...) of a sequence that is read up to `end`. A row past the last visible one
// may be anything: its scores are masked.
Block load_block(const MlaAttention& a, const Segment& segment, size_t first, size_t end,
                 const Work& work) {
  const MlaArgs& args = *a.args;
  const auto row_at = [&](size_t position) {
    return cpu::mla_cache_row(args, *a.batch, segment, position);
  };
  const size_t row_bytes = work.width * dtype_bytes(args.kv_dtype);
  Block block = {work.copy, copy_stride(work.width), std::min(kBlock, end - first), {}};
  block.ahead.at = reinterpret_cast<const std::byte*>(work.query);
  const bool whole = args.page_tokens >= kBlock;  // a block is one piece of memory
  const size_t next = first + kBlock;
  if (whole && next < end) {
    block.ahead = {row_at(next), std::min(kBlock, end - next) * row_bytes / turns(work)};
  }
  if (whole && args.kv_dtype == DType::kF32 && work.latent <= work.width) {
    block.rows = reinterpret_cast<const float*>(row_at(first));
    block.stride = work.width;
    return block;
  }
  for (size_t j = 0; j < block.count; ++j) {
    float* to = work.copy + j * block.stride;
    const std::byte* from = row_at(first + j);
    if (args.kv_dtype == DType::kBF16) {
      widen_bf16(reinterpret_cast<const uint16_t*>(from), to, work.width);
    } else {
      std::memcpy(to, from, row_bytes);
    }
  }
  return block;
}

// Scores of the V vectors of a group with `count` rows, a multiple of 4.
template <int V>
void score_group(const float* query, const float* rows, Block& block, size_t dimensions,
                 size_t count, float* score, bool first) {
  constexpr int kBig = 12 / V, kMiddle = 8 / V, kSmall = 4 / V;
  for (size_t t = 0; t < count;) {
    const size_t left = count - t, odd = left % kBig;
    const Fetch fetch = block.take(dimensions / 4);
    const float* row = rows + t * block.stride;
    float* to = score + t * V * kWidth;
    if (odd == 0) {
      score_tile<V, kBig>(query, row, block.stride, dimensions, to, first, fetch);
      t += kBig;
    } else if (odd == kMiddle || left >= 2 * kMiddle) {
      score_tile<V, kMiddle>(query, row, block.stride, dimensions, to, first, fetch);
      t += kMiddle;
    } else {
      score_tile<V, kSmall>(query, row, block.stride, dimensions, to, first, fetch);
      t += kSmall;
    }
  }
}

void score_block(const Work& work, Block& block) {
  const size_t count = (block.count + 3) / 4 * 4;
  for (size_t at = 0; at < work.width; at += kScoreBlock) {
    const size_t dimensions = std::min<size_t>(kScoreBlock, work.width - at);
    work.for_groups([&](size_t first, size_t side) {
      const float* query = work.query + first * work.width + at * side;
      float* score = work.score + first * kBlock;
      if (side == 16) {
        score_group<16 / kWidth>(query, block.rows + at, block, dimensions, count, score, at == 0);
      } else {
        score_group<8 / kWidth>(query, block.rows + at, block, dimensions, count, score, at == 0);
      }
    });
  }
}

// Scores -> softmax numerators; the block's maximum and sum (ascending positions) join the span's.
// A query that sees nothing of the block is left alone, its numerators are void.
template <bool kMasked>
KERNEL_FN void softmax_group(const Work& work, size_t first, size_t side, size_t count,
                             Lanes scale) {
  for (size_t i = 0; i < side; i += kWidth) {
    float* score = work.score + first * kBlock + i;
    const size_t query = first + i;
    const Lanes visible = Lanes::load(work.visible + query);
    Lanes most(-kInfinity);
    for (size_t t = 0; t < count; ++t) {
      Lanes scaled = Lanes::load(score + t * side) * scale;
      if (kMasked)
        scaled = select(Lanes(static_cast<float>(t)) < visible, scaled, Lanes(-kInfinity));
      scaled.store(score + t * side);
      most = select(most < scaled, scaled, most);
    }
    Lanes sum = Lanes::zero();
    for (size_t t = 0; t < count; ++t) {
      const Lanes weight = math::exp(Lanes::load(score + t * side) - most);
      weight.store(score + t * side);
      sum = sum + weight;
    }
    const Lanes old_max = Lanes::load(work.span.max + query),
                old_sum = Lanes::load(work.span.sum + query);
    const MergeFactors<Lanes> factors = merge_factors(old_max, most);
    const Lanes merged = merge(old_sum, sum, factors.old_factor, factors.block_factor);
    const auto seen = Lanes::zero() < visible;
    select(seen, factors.max, old_max).store(work.span.max + query);
    select(seen, merged, old_sum).store(work.span.sum + query);
    factors.old_factor.store(work.old_factor + query);
    factors.block_factor.store(work.block_factor + query);
  }
}

// Adds the weighted rows of the block to Q queries of one group, V vectors of dimensions at a time.
template <int V>
void weigh_dimensions(const Work& work, Block& block, size_t at, bool masked) {
  for (size_t query = 0; query < work.queries; query += 4) {
    const size_t group = query / 16 * 16, side = std::min<size_t>(16, work.padded - group);
    const float* weight = work.score + group * kBlock + query % 16;
    const auto tile = [&]<int Q>(size_t first, size_t count) KERNEL_LAMBDA {
      const Fetch fetch = block.take(count);
      weigh_tile<Q, V>(weight + (first - query), side, block.rows + at, block.stride, count,
                       work.old_factor + first, work.block_factor + first,
                       work.span.out + first * work.latent + at, work.latent, fetch);
    };
    const auto seen = [&](size_t q) { return static_cast<size_t>(work.visible[q]); };
    const size_t some = std::min<size_t>(4, work.queries - query);
    bool same = some == 4;
    for (size_t q = 1; masked && q < some; ++q) same = same && seen(query + q) == seen(query);
    if (same) {
      const size_t count = masked ? seen(query) : block.count;
      if (count != 0) tile.template operator()<4>(query, count);
      continue;
    }
    for (size_t q = query; q < query + some; ++q) {
      if (seen(q) != 0) tile.template operator()<1>(q, seen(q));
    }
  }
}

void weigh_block(const Work& work, Block& block, bool masked) {
  for (size_t at = 0; at < work.latent;) {
    const size_t left = (work.latent - at) / kWidth;
    if (left == 2 || left == 4) {
      weigh_dimensions<2>(work, block, at, masked);
      at += 2 * kWidth;
    } else {
      weigh_dimensions<3>(work, block, at, masked);
      at += 3 * kWidth;
    }
  }
}

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
                 const Work& work, Lanes scale) {
  std::fill(work.span.out, work.span.out + work.padded * work.latent, 0.0f);
  std::fill(work.span.max, work.span.max + work.padded, -kInfinity);
  std::fill(work.span.sum, work.span.sum + work.padded, 0.0f);
  const size_t heads = task.head_end - task.head_begin;
  for (; first < end; first += kBlock) {
    Block block = load_block(a, *task.segment, first, end, work);
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
    attend_span(a, task, first, std::min<size_t>(end, first + kAttentionSpan), part, scale);
    for (size_t q = 0; !shared && span != 0 && q < work.queries; ++q) {
      if (visible_to(task, q) > first) merge_query(work.total, into, q, work.latent);
    }
  }
  if (task.partials != nullptr) return;
  for (size_t q = 0; q < work.queries; ++q) store_output(a, task, work.total, q, work.latent);
}

void finish(const MlaAttention& a, const MlaTask& task, size_t query) {
  const size_t queries = task.queries(), latent = padded(a.args->kv_lora);
  const size_t step = cpu::mla_partial_floats(*a.args, queries);
  const auto partial = [&](size_t span) {
    return Partial(task.partials + span * step, (queries + 7) / 8 * 8, latent);
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
  return (queries + 7) / 8 * 8 * ((args.kv_lora + 15) / 16 * 16 + 2);
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
