#include "runtime/mla_layer.hpp"

#include "runtime/layer_columns.hpp"

namespace runtime {

MlaScratch::MlaScratch(const ModelConfig& config, size_t max_rows) {
  const MlaColumns columns(config.mla);
  in = RowBuffer(max_rows, columns.total);
  if (config.mla.q_lora != 0) {
    bottleneck = RowBuffer(max_rows, config.mla.q_lora);
    q = RowBuffer(max_rows, columns.query_width);
  }
  out = RowBuffer(max_rows, columns.value_width);
}

MlaLayer::MlaLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name,
                   uint64_t page_offset, const ModelOptions& options)
    : config_(config.mla),
      page_offset_(page_offset),
      page_tokens_(options.page_tokens),
      kv_dtype_(options.kv_dtype) {
  const MlaColumns columns(config_);
  const size_t hidden = config.hidden, latent = config_.kv_lora;
  std::vector<PackedWeights::Part> parts;
  if (config_.q_lora != 0) {
    parts.push_back({name + "q_a_proj", config_.q_lora});
    q_norm_ = weights.vector(name + "q_a_layernorm.weight", config_.q_lora);
    q_ = weights.matrix(name + "q_b_proj", columns.query_width, config_.q_lora);
  } else {
    parts.push_back({name + "q_proj", columns.query_width});
  }
  if (config_.output_gate) parts.push_back({name + "g_proj", columns.value_width});
  parts.push_back({name + "kv_a_proj_with_mqa", latent + config_.d_rope});
  in_ = weights.stack(parts, hidden);
  kv_norm_ = weights.vector(name + "kv_a_layernorm.weight", latent);
  out_ = weights.matrix(name + "o_proj", hidden, columns.value_width);

  // kv_b_proj: per head, d_nope rows W_kc over d_v rows W_vc, each [.., kv_lora].
  const size_t head_rows = size_t{config_.d_nope} + config_.d_v;
  const auto kv_b =
      weights.source().table(name + "kv_b_proj.weight", config_.heads * head_rows, latent);
  const size_t row_bytes = latent * kernels::dtype_bytes(kv_b.dtype);
  for (size_t head = 0; head < config_.heads; ++head) {
    const std::byte* first =
        static_cast<const std::byte*>(kv_b.data) + head * head_rows * row_bytes;
    kernels::MatrixView keys = kv_b;  // transposed: q~ = W_kc^T q
    keys.data = first;
    keys.n = latent;
    keys.k = config_.d_nope;
    keys.stride_n = 1;
    keys.stride_k = latent;
    absorb_k_.push_back(weights.pack(keys));
    kernels::MatrixView values = kv_b;
    values.data = first + config_.d_nope * row_bytes;
    values.n = config_.d_v;
    absorb_v_.push_back(weights.pack(values));
  }
}

void MlaLayer::forward(kernels::Ops& ops, kernels::Rows x, const kernels::BatchView& batch,
                       const CacheMemory& memory, MlaScratch& scratch, kernels::MutableRows out,
                       const LayerAdapterUse& adapter) const {
  const MlaColumns columns(config_);
  const size_t rows = batch.row_count;
  ops.matmul(x, *in_, scratch.in.rows(), rows);
  adapter.add(ops, &LayerAdapter::query, x, scratch.in.columns(columns.query), rows);
  adapter.add(ops, &LayerAdapter::latent, x, scratch.in.columns(columns.latent), rows);

  kernels::MlaArgs args;
  args.q = scratch.in.columns(columns.query);
  if (q_ != nullptr) {
    const auto bottleneck = scratch.bottleneck.rows();
    ops.rms_norm(scratch.in.rows(), q_norm_.data(), kLatentNormEps, bottleneck, rows,
                 config_.q_lora);
    ops.matmul(bottleneck, *q_, scratch.q.rows(), rows);
    args.q = scratch.q.rows();
  }
  const kernels::Rows gate = scratch.in.columns(columns.gate);
  args.heads = config_.heads;
  args.d_nope = config_.d_nope;
  args.d_rope = config_.d_rope;
  args.d_v = config_.d_v;
  args.kv_lora = config_.kv_lora;
  args.ckv = scratch.in.columns(columns.latent);
  args.kv_norm = kv_norm_.data();
  args.kv_norm_eps = kLatentNormEps;
  args.absorb_k = absorb_k_;
  args.absorb_v = absorb_v_;
  args.gate = config_.output_gate ? &gate : nullptr;
  args.page_base = memory.page_base;
  args.page_stride = memory.page_stride;
  args.layer_offset = page_offset_;
  args.page_tokens = page_tokens_;
  args.kv_dtype = kv_dtype_;
  args.out = scratch.out.rows();
  ops.mla(args, batch);

  ops.matmul(scratch.out.rows(), *out_, out, rows);
  adapter.add(ops, &LayerAdapter::out, scratch.out.rows(), out, rows);
}

}  // namespace runtime
