#include "runtime/kda_layer.hpp"

#include "runtime/layer_columns.hpp"

namespace runtime {

KdaScratch::KdaScratch(const ModelConfig& config, size_t max_rows) {
  const KdaColumns columns(config.kda);
  in = RowBuffer(max_rows, columns.total);
  decay = RowBuffer(max_rows, columns.width);
  if (!config.kda.full_rank_gate) gate = RowBuffer(max_rows, columns.width);
  out = RowBuffer(max_rows, columns.width);
}

KdaLayer::KdaLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name,
                   const StateLayout::Kda& place)
    : config_(config.kda), norm_eps_(config.norm_eps), place_(place) {
  const size_t hidden = config.hidden, d = config_.d, width = KdaColumns(config_).width;
  const PackedWeights::Part gate = config_.full_rank_gate
                                       ? PackedWeights::Part{name + "g_proj", width}
                                       : PackedWeights::Part{name + "g_a_proj", d};
  const PackedWeights::Part parts[] = {{name + "q_proj", width}, {name + "k_proj", width},
                                       {name + "v_proj", width}, gate,
                                       {name + "f_a_proj", d},   {name + "b_proj", config_.heads}};
  in_ = weights.stack(parts, hidden);
  decay_ = weights.matrix(name + "f_b_proj", width, d);
  if (!config_.full_rank_gate) gate_ = weights.matrix(name + "g_b_proj", width, d);
  out_ = weights.matrix(name + "o_proj", hidden, width);
  for (const char* part : {"q", "k", "v"}) {
    const auto taps =
        weights.floats(name + part + "_conv1d.weight", {width, 1, config_.conv_width});
    conv_.insert(conv_.end(), taps.begin(), taps.end());
  }
  a_log_ = weights.padded(name + "A_log", config_.heads);
  dt_bias_ = weights.vector(name + "dt_bias", width);
  norm_ = weights.vector(name + "o_norm.weight", d);
}

void KdaLayer::forward(kernels::Ops& ops, kernels::Rows x, const ForwardBatch& batch,
                       const CacheMemory& memory, KdaScratch& scratch, kernels::MutableRows out,
                       const LayerAdapterUse& adapter) const {
  const KdaColumns columns(config_);
  const size_t rows = batch.view.row_count;
  ops.matmul(x, *in_, scratch.in.rows(), rows);
  ops.matmul(scratch.in.columns(columns.decay), *decay_, scratch.decay.rows(), rows);

  kernels::KdaArgs args;
  args.heads = config_.heads;
  args.d = config_.d;
  args.conv_width = config_.conv_width;
  args.qkv = scratch.in.rows();
  args.decay = scratch.decay.rows();
  args.beta = scratch.in.columns(columns.beta);
  args.gate = scratch.in.columns(columns.gate);
  if (gate_ != nullptr) {
    ops.matmul(args.gate, *gate_, scratch.gate.rows(), rows);
    args.gate = scratch.gate.rows();
  }
  args.conv = conv_.data();
  args.a_log = a_log_.data();
  args.dt_bias = dt_bias_.data();
  args.has_lower_bound = config_.lower_bound.has_value();
  args.lower_bound = config_.lower_bound.value_or(0.0f);
  args.norm = norm_.data();
  args.norm_eps = norm_eps_;
  args.state_base = memory.state_base;
  args.slot_stride = memory.state_stride;
  args.recurrent_offset = place_.recurrent;
  args.conv_offset = place_.conv;
  args.captures = batch.captures;
  args.out = scratch.out.rows();
  ops.kda(args, batch.view);

  ops.matmul(scratch.out.rows(), *out_, out, rows);
  adapter.add(ops, &LayerAdapter::out, scratch.out.rows(), out, rows);
}

}  // namespace runtime
