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

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/attention.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::kMlaTaskHeads;
using cpu::kMlaTaskRows;
using cpu::MlaAttention;
using cpu::MlaTask;

constexpr size_t kBlock = kAttentionBlock;
constexpr size_t kQueries = kMlaTaskRows * kMlaTaskHeads;
constexpr size_t kAhead =
    8;  // positions whose rows are fetched before they are needed: 18 KB of 576 floats

size_t padded(size_t width) { return (width + 15) / 16 * 16; }

// One task's scratch. Rows are zero-padded to a multiple of 16, so sums over dimensions have no
// tails.
struct Work {
  size_t width;   // padded kv_lora + d_rope
  size_t latent;  // padded kv_lora
  float* query;   // [queries][width]
  float* out;     // [queries][latent]
  float* weight;  // [4][kBlock] softmax numerators of one query tile
  float* max;     // [queries]
  float* sum;     // [queries]
  float* copy;    // [kBlock][width] of a block whose stored rows cannot be read in place
  const float* row[kBlock + kAhead];  // this block's rows; behind them what comes next, only to be
                                      // prefetched

  Work(const MlaArgs& args, float* scratch)
      : width(padded(args.kv_lora + args.d_rope)),
        latent(padded(args.kv_lora)),
        query(scratch),
        out(query + kQueries * width),
        weight(out + kQueries * latent),
        max(weight + 4 * kBlock),
        sum(max + kQueries),
        copy(sum + kQueries) {}
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

// Points work.row at the rows of positions [first, first + count), copying those that are bf16 or
// not padded. The sequence has `end` positions.
void load_block(const MlaAttention& a, const Segment& segment, size_t first, size_t count,
                size_t end, Work& work) {
  const MlaArgs& args = *a.args;
  const size_t stored = args.kv_lora + args.d_rope, row_bytes = stored * dtype_bytes(args.kv_dtype);
  const bool in_place = args.kv_dtype == DType::kF32 && stored == work.width;
  for (size_t j = 0; j < count + kAhead; ++j) {
    const std::byte* source =
        cpu::mla_cache_row(args, *a.batch, segment, std::min(first + j, end - 1));
    work.row[j] = reinterpret_cast<const float*>(source);
    if (in_place) continue;
    for (size_t byte = 0; byte < row_bytes; byte += 64) __builtin_prefetch(source + byte, 0, 2);
  }
  if (in_place) return;
  for (size_t j = 0; j < count; ++j) {
    float* copy = work.copy + j * work.width;
    if (args.kv_dtype == DType::kBF16) {
      widen_bf16(reinterpret_cast<const uint16_t*>(work.row[j]), copy, stored);
    } else {
      std::memcpy(copy, work.row[j], stored * sizeof(float));
    }
    std::fill(copy + stored, copy + work.width, 0.0f);
    work.row[j] = copy;
  }
}

using QuadTag = hn::CappedTag<float, 4>;
using Quad = hn::Vec<QuadTag>;

// The folds 8 and 4 of fold_lanes, on 16 lanes given as kPer16 vectors.
KERNEL_FN Quad fold_to_quad(const Lanes (&part)[kPer16]) {
#if HWY_MAX_BYTES >= 32
  const auto eight = hn::Add(part[0].v, part[1].v);
  return hn::Add(hn::LowerHalf(QuadTag(), eight), hn::UpperHalf(QuadTag(), eight));
#else
  return hn::Add(hn::Add(part[0].v, part[2].v), hn::Add(part[1].v, part[3].v));
#endif
}

// The folds 2 and 1, of four sums at once.
KERNEL_FN Quad fold_quads(const Quad (&x)[4]) {
  const QuadTag tag;
  const Quad low =
      hn::Add(hn::ConcatLowerLower(tag, x[1], x[0]), hn::ConcatUpperUpper(tag, x[1], x[0]));
  const Quad high =
      hn::Add(hn::ConcatLowerLower(tag, x[3], x[2]), hn::ConcatUpperUpper(tag, x[3], x[2]));
  return hn::Add(hn::ConcatEven(tag, high, low), hn::ConcatOdd(tag, high, low));
}

// Dot products of Q queries with T rows, in the 16 lanes and folds of kernels/norm.hpp: one pass
// per vector of lanes keeps Q * T sums in registers.
template <int Q, int T>
KERNEL_FN void score_tile(const float* query, size_t width, const float* const* row, float* score) {
  Lanes part[Q][T][kPer16];
#pragma GCC unroll 4
  for (size_t p = 0; p < kPer16; ++p) {
    Lanes sum[Q][T];
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sum[q][t] = Lanes::zero();
    }
    for (size_t i = p * kWidth; i < width; i += 16) {
      Lanes value[T];
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        value[t] = Lanes::load(row[t] + i);
        if (p == 0) __builtin_prefetch(row[static_cast<size_t>(t) + kAhead] + i, 0, 2);
      }
#pragma GCC unroll 16
      for (int q = 0; q < Q; ++q) {
        const Lanes x = Lanes::load(query + static_cast<size_t>(q) * width + i);
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) sum[q][t] = multiply_add(x, value[t], sum[q][t]);
      }
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) part[q][t][p] = sum[q][t];
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    Quad quads[4];
#pragma GCC unroll 16
    for (int q = 0; q < 4; ++q)
      quads[q] = q < Q ? fold_to_quad(part[q < Q ? q : 0][t]) : hn::Zero(QuadTag());
    float folded[4];
    hn::StoreU(fold_quads(quads), QuadTag(), folded);
    for (int q = 0; q < Q; ++q)
      score[static_cast<size_t>(q) * kBlock + static_cast<size_t>(t)] = folded[q];
  }
}

// Scores of one query -> softmax numerators and the block's maximum and sum. Past `count` the
// numerators are 0.
KERNEL_FN void softmax_block(float* score, size_t count, float scale, float& block_max,
                             float& block_sum) {
  std::fill(score + count, score + kBlock, -std::numeric_limits<float>::infinity());
  Lanes most(-std::numeric_limits<float>::infinity());
  for (size_t j = 0; j < kBlock; j += kWidth) {
    const Lanes scaled = Lanes::load(score + j) * Lanes(scale);
    scaled.store(score + j);
    most = select(most < scaled, scaled, most);
  }
  block_max = hn::GetLane(hn::MaxOfLanes(FloatTag(), most.v));
  LaneSum sum;
  for (size_t j = 0; j < kBlock; j += 16) {
    for (size_t i = 0; i < kPer16; ++i) {
      float* at = score + j + i * kWidth;
      const Lanes weight = math::exp(Lanes::load(at) - Lanes(block_max));
      weight.store(at);
      sum.part[i] = sum.part[i] + weight;
    }
  }
  float lane[16];
  sum.store(lane);
  block_sum = fold_lanes(lane);
}

// out <- merge(out, sum over j of weight[j] row[j]) for Q queries, 16 dimensions at a time.
template <int Q>
KERNEL_FN void weigh_rows(const Work& work, const float* weight, size_t count,
                          const MergeFactors<Lanes>* factors, float* out) {
  for (size_t at = 0; at < work.latent; at += 16) {
    Lanes sum[Q][kPer16];
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
      for (size_t i = 0; i < kPer16; ++i) sum[q][i] = Lanes::zero();
    }
    for (size_t j = 0; j < count; ++j) {
      Lanes value[kPer16];
#pragma GCC unroll 16
      for (size_t i = 0; i < kPer16; ++i) value[i] = Lanes::load(work.row[j] + at + i * kWidth);
#pragma GCC unroll 16
      for (int q = 0; q < Q; ++q) {
        const Lanes w(weight[static_cast<size_t>(q) * kBlock + j]);
#pragma GCC unroll 16
        for (size_t i = 0; i < kPer16; ++i) sum[q][i] = multiply_add(w, value[i], sum[q][i]);
      }
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
      float* o = out + static_cast<size_t>(q) * work.latent + at;
#pragma GCC unroll 16
      for (size_t i = 0; i < kPer16; ++i)
        merge(Lanes::load(o + i * kWidth), sum[q][i], factors[q]).store(o + i * kWidth);
    }
  }
}

// One block of `count` visible positions against Q heads of one row.
template <int Q>
void attend_tile(const Work& work, size_t first_query, size_t count, float scale) {
  const float* query = work.query + first_query * work.width;
  size_t j = 0;
  for (; j + 2 <= count; j += 2) score_tile<Q, 2>(query, work.width, work.row + j, work.weight + j);
  if (j < count) score_tile<Q, 1>(query, work.width, work.row + j, work.weight + j);
  MergeFactors<Lanes> factors[Q];
  for (size_t q = 0; q < Q; ++q) {
    float block_max, block_sum;
    softmax_block(work.weight + q * kBlock, count, scale, block_max, block_sum);
    float& max = work.max[first_query + q];
    float& sum = work.sum[first_query + q];
    factors[q] = merge_factors(Lanes(max), Lanes(block_max));
    max = factors[q].max.first();
    sum = merge(Lanes(sum), Lanes(block_sum), factors[q]).first();
  }
  weigh_rows<Q>(work, work.weight, count, factors, work.out + first_query * work.latent);
}

void attend_heads(const Work& work, size_t first_query, size_t heads, size_t count, float scale) {
  size_t head = 0;
  for (; head + 4 <= heads; head += 4) attend_tile<4>(work, first_query + head, count, scale);
  switch (heads - head) {
    case 3:
      return attend_tile<3>(work, first_query + head, count, scale);
    case 2:
      return attend_tile<2>(work, first_query + head, count, scale);
    case 1:
      return attend_tile<1>(work, first_query + head, count, scale);
    default:
      return;
  }
}

// Gathers the queries [q_latent | q_r] and starts their sums.
void load_queries(const MlaAttention& a, const MlaTask& task, Work& work) {
  const MlaArgs& args = *a.args;
  const size_t d = args.d_nope + args.d_rope;
  size_t index = 0;
  for (size_t row = task.row_begin; row < task.row_end; ++row) {
    const size_t batch_row = task.segment->row_begin + row;
    for (size_t head = task.head_begin; head < task.head_end; ++head, ++index) {
      float* query = work.query + index * work.width;
      const float* latent =
          a.q_latent + ((batch_row - a.first_row) * args.heads + head) * args.kv_lora;
      const float* rope = args.q.data + batch_row * args.q.ld + head * d + args.d_nope;
      std::copy(latent, latent + args.kv_lora, query);
      std::copy(rope, rope + args.d_rope, query + args.kv_lora);
      std::fill(query + args.kv_lora + args.d_rope, query + work.width, 0.0f);
    }
  }
  std::fill(work.out, work.out + index * work.latent, 0.0f);
  std::fill(work.max, work.max + index, -std::numeric_limits<float>::infinity());
  std::fill(work.sum, work.sum + index, 0.0f);
}

void store_outputs(const MlaAttention& a, const MlaTask& task, const Work& work) {
  const MlaArgs& args = *a.args;
  size_t index = 0;
  for (size_t row = task.row_begin; row < task.row_end; ++row) {
    const size_t buffer_row = task.segment->row_begin + row - a.first_row;
    for (size_t head = task.head_begin; head < task.head_end; ++head, ++index) {
      const float inverse = 1.0f / work.sum[index];
      const float* from = work.out + index * work.latent;
      float* to = a.out + (buffer_row * args.heads + head) * args.kv_lora;
      for (size_t i = 0; i < args.kv_lora; ++i) to[i] = from[i] * inverse;
    }
  }
}

void attend(const MlaAttention& a, const MlaTask& task, float* scratch) {
  Work work(*a.args, scratch);
  load_queries(a, task, work);
  const float scale =
      math::inverse_sqrt(Lanes(static_cast<float>(a.args->d_nope + a.args->d_rope))).first();
  const size_t heads = task.head_end - task.head_begin;
  const size_t end = task.segment->position + task.row_end;  // positions the last row sees
  for (size_t first = 0; first < end; first += kBlock) {
    load_block(a, *task.segment, first, std::min(kBlock, end - first), end, work);
    for (size_t row = task.row_begin; row < task.row_end; ++row) {
      const size_t visible = task.segment->position + row + 1;
      if (visible <= first) continue;
      attend_heads(work, (row - task.row_begin) * heads, heads, std::min(kBlock, visible - first),
                   scale);
    }
  }
  store_outputs(a, task, work);
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(attend);

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

size_t mla_scratch(const MlaArgs& args) {
  const size_t width = (args.kv_lora + args.d_rope + 15) / 16 * 16,
               latent = (args.kv_lora + 15) / 16 * 16;
  constexpr size_t kPositions = HWY_NAMESPACE::kAttentionBlock,
                   kQueries = kMlaTaskRows * kMlaTaskHeads;
  return kQueries * (width + latent + 2) + 4 * kPositions + kPositions * width;
}

void mla_attend(const MlaAttention& attention, const MlaTask& task, float* scratch) {
  HWY_DYNAMIC_DISPATCH(attend)(attention, task, scratch);
}

}  // namespace cpu
}  // namespace kernels
#endif
