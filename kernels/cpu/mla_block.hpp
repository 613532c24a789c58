// One block of positions against all queries of a task: scores, softmax, weighted rows. Included
// once per SIMD target.
#if defined(KERNELS_CPU_MLA_BLOCK_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_MLA_BLOCK_HPP_
#else
#define KERNELS_CPU_MLA_BLOCK_HPP_
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/mla.hpp"
#include "kernels/cpu/mla_tile.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::MlaAttention;
using cpu::MlaTask;

constexpr size_t kBlock = kAttentionBlock;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
        padded(cpu::mla_padded_queries(queries)),
        width(args.kv_lora + args.d_rope),
        latent(cpu::mla_padded_width(args.kv_lora)),
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

size_t copy_stride(size_t width) {
  return cpu::mla_padded_width(width) + 16;
}  // never a power of two

// About how many times the tiles of a block call Fetch::one().
size_t turns(const Work& work) {
  const size_t score = work.padded * kBlock * work.width / (4 * 12 * kWidth);
  const size_t weigh = work.padded * kBlock * work.latent / (4 * 3 * kWidth);
  return score + weigh + 1;
}

// Positions [first, ...) of a sequence that is read up to `end`, and after that perhaps further, up
// to `fetch_end`. A row past the last visible one may be anything: its scores are masked.
Block load_block(const MlaAttention& a, const Segment& segment, size_t first, size_t end,
                 size_t fetch_end, const Work& work) {
  const MlaArgs& args = *a.args;
  const auto row_at = [&](size_t position) {
    return cpu::mla_cache_row(args, *a.batch, segment, position);
  };
  const size_t row_bytes = work.width * dtype_bytes(args.kv_dtype);
  Block block = {work.copy, copy_stride(work.width), std::min(kBlock, end - first), {}};
  block.ahead.at = reinterpret_cast<const std::byte*>(work.query);
  const bool whole = args.page_tokens >= kBlock;  // a block is one piece of memory
  const size_t next = first + kBlock;
  if (whole && next < fetch_end) {
    block.ahead = {row_at(next), std::min(kBlock, fetch_end - next) * row_bytes / turns(work)};
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
      const Lanes weight = math::exp_up_to_40(Lanes::load(score + t * side) - most);
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

}  // namespace
KERNEL_NAMESPACE_END
#endif
