#include "runtime/sim/step_pricer.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/sim/transfer_cost.hpp"

namespace runtime {
namespace {

constexpr double kBf16 = 2;
constexpr double kF32 = 4;

}  // namespace

StepPricer::StepPricer(const kernels::DeviceParams& device, const ModelGeometry& geometry,
                       const ParallelLayout& layout, const StepOptions& options,
                       const ExpertRouting& routing, const StepShape& shape)
    : device_(device),
      geometry_(geometry),
      layout_(layout),
      options_(options),
      routing_(routing),
      prefills_(shape.prefill_rows > 0),
      fused_(options.fusions) {
  if (prefills_) fused_ = {options.fusions.launches, false, false, false};
  const double copies = layout.data;
  const auto share = [copies](auto sum) { return static_cast<double>(sum) / copies; };
  all_tokens_ = static_cast<double>(shape.tokens());
  logit_rows_ = static_cast<double>(shape.decode_tokens) + shape.prefill_rows;
  prefill_tokens_ = std::ceil(share(shape.prefill_tokens));
  prefill_longest_ = static_cast<double>(shape.prefill_longest);
  prefill_context_ = share(shape.prefill_context);
  prefill_pairs_ = share(shape.prefill_pairs);
  decode_rows_ = std::ceil(share(shape.decode_rows));
  decode_tokens_ = shape.decode_rows == 0
                       ? 0
                       : decode_rows_ * static_cast<double>(shape.decode_tokens) /
                             static_cast<double>(shape.decode_rows);
  decode_context_ = share(shape.decode_context);
  tokens_ = prefill_tokens_ + decode_tokens_;
  // A draft's token shares most experts with the token before it.
  const auto drafts = static_cast<double>(shape.decode_tokens - shape.decode_rows);
  expert_tokens_ = static_cast<double>(shape.prefill_tokens) + shape.decode_rows +
                   device.expert_new_per_draft * drafts;
  const double ranks = layout.attention_ranks();
  kda_width_ = geometry.kda_width() / ranks;
  heads_ = geometry.mla_heads / ranks;
  query_heads_ = heads_ * layout.context;  // positions are sharded: a rank needs all heads' queries
  split_ = options.sequence_parallel && layout.experts > 1 && prefills_ ? layout.tensor : 1;
}

void StepPricer::add(StepBreakdown& to, CostClass cost, double us) const {
  if (us == 0) return;
  if (fused_.overlap) us = std::max(device_.kernel_floor_us, us - device_.gap_us);
  to[cost].us += us;
  ++to[cost].launches;
}

void StepPricer::beside(StepBreakdown& to, CostClass cost, double main_us, double us) const {
  if (us == 0) return;
  to[cost].us += fused_.overlap ? std::max(0.0, us - main_us) : us;
  ++to[cost].launches;
}

double StepPricer::product_us(double m, double n, double k) const {
  return kernels::product_us(device_, {m, n, k});
}

void StepPricer::product(StepBreakdown& to, double m, double n, double k) const {
  add(to, CostClass::kProjections, product_us(m, n, k));
}

void StepPricer::stream(StepBreakdown& to, double bytes) const {
  add(to, CostClass::kStreaming, kernels::stream_us(device_, bytes));
}

void StepPricer::all_reduce(StepBreakdown& to, uint32_t ranks, double bytes) const {
  add(to, CostClass::kCollectives, kernels::all_reduce_us(device_, ranks, bytes));
}

StepBreakdown StepPricer::embedding() const {
  StepBreakdown to;
  const double bytes = tokens_ * geometry_.hidden * kBf16;
  stream(to, 2 * bytes);
  all_reduce(to, layout_.attention_ranks(), bytes);
  return to;
}

StepBreakdown StepPricer::sublayer_input(uint32_t sources) const {
  StepBreakdown to;
  const double row = tokens_ * geometry_.hidden * kBf16 / split_;
  if (fused_.kernels) {
    // One kernel reads each source once, and normalises what it wrote.
    stream(to, (std::max(sources, 1u) + 1.0) * row);
  } else {
    if (sources > 0) stream(to, (2.0 * sources + 1) * row);  // scores first, then the sum
    stream(to, 2 * row);
  }
  return to;
}

// Into the running sum; a prefill's products add to it themselves.
void StepPricer::residual_add(StepBreakdown& to) const {
  if (!prefills_ && !fused_.communication) stream(to, 3 * tokens_ * geometry_.hidden * kBf16);
}

void StepPricer::attention_output(StepBreakdown& to, double width) const {
  product(to, tokens_, geometry_.hidden, width);
  all_reduce(to, layout_.attention_ranks(), tokens_ * geometry_.hidden * kBf16);
  residual_add(to);
}

void StepPricer::kda_recurrence(StepBreakdown& to) const {
  const double ranks = layout_.attention_ranks();
  const kernels::KdaWork work{geometry_.kda_heads / ranks,
                              geometry_.kda_d * geometry_.kda_d * kF32};
  add(to, CostClass::kKda,
      kernels::kda_prefill_us(device_, work, prefill_tokens_, prefill_longest_));
  stream(to, 3 * prefill_tokens_ * kda_width_ * kBf16);  // output norm and gate
  if (!prefills_ && !fused_.kernels) {
    stream(to, 6 * decode_tokens_ * kda_width_ * kBf16);  // convolution
    stream(to, 3 * decode_tokens_ * kda_width_ * kBf16);
  }
  if (decode_tokens_ > decode_rows_) {
    add(to, CostClass::kKda,
        kernels::kda_verify_us(device_, work, decode_rows_, decode_tokens_ / decode_rows_));
  } else {
    add(to, CostClass::kKda, kernels::kda_decode_us(device_, work, decode_rows_));
  }
}

StepBreakdown StepPricer::kda() const {
  StepBreakdown to;
  const double d = geometry_.kda_d, hidden = geometry_.hidden;
  const bool thin_gate = !geometry_.kda_full_gate;
  const double wide_us = product_us(tokens_, (thin_gate ? 3 : 4) * kda_width_, hidden);
  add(to, CostClass::kProjections, wide_us);
  // Decay and beta (and a thin output gate): a skinny product, then one back to the heads' width.
  const double latents = d * (thin_gate ? 2 : 1);
  double thin_us = product_us(tokens_, kda_width_, d) * (thin_gate ? 2 : 1);
  if (fused_.launches) {
    thin_us += product_us(tokens_, latents + geometry_.kda_heads, hidden);
  } else {
    thin_us += product_us(tokens_, latents, hidden);
    thin_us += product_us(tokens_, geometry_.kda_heads, hidden);
  }
  beside(to, CostClass::kProjections, wide_us, thin_us);
  kda_recurrence(to);
  attention_output(to, kda_width_);
  return to;
}

kernels::MlaWork StepPricer::mla_work(double heads) const {
  return {heads,
          geometry_.d_nope + geometry_.d_rope,
          geometry_.d_v,
          geometry_.kv_row(),
          geometry_.kv_lora,
          geometry_.kv_row() * bytes_of(options_.kv)};
}

void StepPricer::mla_prefill(StepBreakdown& to) const {
  if (prefill_tokens_ == 0) return;
  const auto work = mla_work(heads_);
  if (layout_.context > 1) {  // the other ranks' positions of what was cached before
    const double others = 1 - 1.0 / layout_.context;
    add(to, CostClass::kCollectives,
        kernels::exchange_us(device_, layout_.context, prefill_context_ * work.row_bytes * others));
  }
  product(to, prefill_tokens_ + prefill_context_, heads_ * (geometry_.d_nope + geometry_.d_v),
          geometry_.kv_lora);
  add(to, CostClass::kMla, kernels::mla_prefill_us(device_, work, prefill_pairs_));
  if (geometry_.mla_gate) stream(to, 3 * prefill_tokens_ * heads_ * geometry_.d_v * kBf16);
}

void StepPricer::mla_decode(StepBreakdown& to) const {
  if (decode_rows_ == 0) return;
  const double shards = layout_.context;
  if (!prefills_ && !fused_.overlap) {  // two norms, and the row into the cache
    stream(to, 2 * decode_tokens_ * geometry_.q_lora * kBf16);
    stream(to, 2 * decode_tokens_ * geometry_.kv_row() * kBf16);
    stream(to, 2 * decode_tokens_ * geometry_.kv_row() * kBf16);
  }
  product(to, decode_tokens_, query_heads_ * geometry_.kv_lora, geometry_.d_nope);
  add(to, CostClass::kMla,
      kernels::mla_decode_us(device_, mla_work(query_heads_), decode_context_ / shards,
                             decode_tokens_ / decode_rows_));
  // Partial outputs in bf16 and a log-sum-exp in fp32 of every head: a rank keeps its own heads'
  // and sends the rest.
  const double partial = query_heads_ * (geometry_.kv_lora * kBf16 + kF32);
  add(to, CostClass::kCollectives,
      kernels::exchange_us(device_, layout_.context,
                           decode_tokens_ * partial * (shards - 1) / (shards * shards)));
  product(to, decode_tokens_, heads_ * geometry_.d_v, geometry_.kv_lora);
  if (!prefills_ && !fused_.overlap && geometry_.mla_gate) {
    stream(to, 3 * decode_tokens_ * heads_ * geometry_.d_v * kBf16);
  }
}

StepBreakdown StepPricer::mla() const {
  StepBreakdown to;
  const double hidden = geometry_.hidden;
  const double gate = geometry_.mla_gate ? heads_ * geometry_.d_v : 0;
  const double queries = query_heads_ * (geometry_.d_nope + geometry_.d_rope);
  if (geometry_.q_lora != 0) {
    product(to, tokens_, geometry_.q_lora + geometry_.kv_row() + gate, hidden);
    product(to, tokens_, queries, geometry_.q_lora);
  } else {
    product(to, tokens_, queries + geometry_.kv_row() + gate, hidden);
  }
  mla_prefill(to);
  mla_decode(to);
  attention_output(to, heads_ * geometry_.d_v);
  return to;
}

void StepPricer::routed_experts(StepBreakdown& to) const {
  const double shared = geometry_.shared_width / layout_.attention_ranks();
  const kernels::ExpertWork work{all_tokens_,
                                 routing_.distinct(expert_tokens_),
                                 geometry_.top_k,
                                 geometry_.expert_params(),
                                 geometry_.expert_bytes(),
                                 static_cast<double>(layout_.expert_slices()),
                                 static_cast<double>(layout_.experts)};
  const double routed_us = kernels::experts_us(device_, work);
  add(to, CostClass::kExperts, routed_us);
  if (shared == 0) return;
  const double shared_us = kernels::stream_us(device_, 3 * tokens_ * shared * kBf16) +
                           product_us(tokens_, geometry_.hidden, shared);
  beside(to, CostClass::kProjections, routed_us, shared_us);
}

// A rank sends its part of the rows to the ranks of their experts in 8 bits, and gets 16 back.
void StepPricer::exchange_experts(StepBreakdown& to) const {
  const double copies = std::min(geometry_.top_k, static_cast<double>(layout_.experts));
  const double rows = all_tokens_ / layout_.tensor * copies;
  add(to, CostClass::kCollectives,
      device_.expert_exchange_us + rows * geometry_.routed_width() * 3 / device_.bus_bytes_per_us);
}

void StepPricer::mixture_output(StepBreakdown& to) const {
  const uint32_t ranks = layout_.attention_ranks();
  const double hidden = geometry_.hidden, latent = geometry_.routed_width();
  const double finalize = fused_.communication ? device_.fused_finalize : 1;
  if (options_.expert_exchange && layout_.experts > 1 && !prefills_) {
    exchange_experts(to);
    all_reduce(to, ranks, tokens_ * hidden * kBf16);  // the shared experts' partial sums
  } else if (layout_.data == 1) {
    // Shared experts' and routed experts' partial sums travel together.
    const double width = hidden + (geometry_.latent != 0 ? latent : 0);
    all_reduce(to, ranks, tokens_ * width * kBf16 * finalize);
  } else {
    all_reduce(to, ranks, tokens_ * hidden * kBf16);
    all_reduce(to, layout_.tensor, all_tokens_ * latent * kBf16 * finalize);
  }
  residual_add(to);
  if (geometry_.latent == 0) return;
  // The norm rides in the all-reduce, the gather in the product's last stores.
  const bool rides = fused_.communication && ranks > 1;
  if (!rides) stream(to, 2 * tokens_ * latent * kBf16 / split_);
  if (rides) {
    const double n = ranks;
    const double gather = tokens_ * hidden * kBf16 * (n - 1) / n / device_.bus_bytes_per_us;
    add(to, CostClass::kProjections, product_us(tokens_, hidden / n, latent) + gather);
  } else {
    product(to, std::ceil(tokens_ / split_), hidden, latent);
  }
}

StepBreakdown StepPricer::mixture() const {
  StepBreakdown to;
  const double shared = geometry_.shared_width / layout_.attention_ranks();
  // Router, latent projection and shared gate and up read the same rows.
  if (fused_.launches) {
    product(to, tokens_, geometry_.experts + geometry_.latent + 2 * shared, geometry_.hidden);
  } else {
    product(to, tokens_, geometry_.experts, geometry_.hidden);
    if (geometry_.latent != 0) product(to, tokens_, geometry_.latent, geometry_.hidden);
    if (shared != 0) product(to, tokens_, 2 * shared, geometry_.hidden);
  }
  stream(to, tokens_ * geometry_.experts * kF32);  // top experts and their weights
  if (!prefills_ && !fused_.overlap) {             // a strided input is copied first
    stream(to, 2 * tokens_ * geometry_.routed_width() * kBf16);
  }
  stream(to, 1.5 * tokens_ * geometry_.routed_width() * kBf16);  // to 8 bits
  routed_experts(to);
  mixture_output(to);
  return to;
}

StepBreakdown StepPricer::dense() const {
  StepBreakdown to;
  const double width = geometry_.dense_width / layout_.attention_ranks();
  product(to, tokens_, 2 * width, geometry_.hidden);
  stream(to, 3 * tokens_ * width * kBf16);
  product(to, tokens_, geometry_.hidden, width);
  all_reduce(to, layout_.attention_ranks(), tokens_ * geometry_.hidden * kBf16);
  residual_add(to);
  return to;
}

StepBreakdown StepPricer::head() const {
  StepBreakdown to;
  product(to, logit_rows_, std::ceil(geometry_.vocab / layout_.tensor), geometry_.hidden);
  to[CostClass::kFixed].us += device_.sampler_us;
  ++to[CostClass::kFixed].launches;
  if (!fused_.launches) {
    to[CostClass::kStreaming].us += options_.extra_launches * device_.kernel_us;
    to[CostClass::kStreaming].launches += static_cast<uint32_t>(options_.extra_launches);
  }
  return to;
}

}  // namespace runtime
