#include "runtime/hybrid_network.hpp"

#include <string>

#include "kernels/base/verify.hpp"

namespace runtime {

Workspace::Workspace(const ModelConfig& config, size_t max_rows, Keep keep)
    : stream(config, max_rows), head(max_rows, config.hidden) {
  const size_t layers = keep == Keep::kLayers ? config.layer_count() : 1;
  for (size_t i = 0; i < (keep == Keep::kLayers ? 2 * layers : 1); ++i)
    sublayers_.push_back({{max_rows, config.hidden}, {max_rows, config.hidden}});
  for (size_t i = 0; i < layers; ++i) {
    kda_.emplace_back(config, max_rows);
    mla_.emplace_back(config, max_rows);
    ffn_.emplace_back(config, max_rows);
  }
}

HybridNetwork::HybridNetwork(const ModelConfig& config, const WeightSource& source,
                             kernels::Ops& ops, const ModelOptions& options)
    : config_(config),
      options_(options),
      layout_(config, options.page_tokens, options.kv_dtype),
      gains_(config) {
  PackedWeights weights(source, ops);
  load_embedding(weights);
  for (uint32_t layer = 0; layer < config_.layer_count(); ++layer)
    layers_.push_back(load_layer(weights, layer));
  load_head(weights);
  weight_bytes_ = weights.bytes() + embedding_bytes_.size();
}

void HybridNetwork::load_embedding(PackedWeights& weights) {
  embedding_ = weights.source().table("model.embed_tokens.weight", config_.vocab, config_.hidden);
  const auto* bytes = static_cast<const std::byte*>(embedding_.data);
  const size_t count =
      size_t{config_.vocab} * config_.hidden * kernels::dtype_bytes(embedding_.dtype);
  embedding_bytes_.assign(bytes, bytes + count);
  embedding_.data = embedding_bytes_.data();
}

HybridNetwork::Layer HybridNetwork::load_layer(PackedWeights& weights, uint32_t index) const {
  const std::string name = "model.layers." + std::to_string(index) + ".";
  const size_t hidden = config_.hidden;
  Layer layer;
  layer.attention_norm = weights.vector(name + "input_layernorm.weight", hidden);
  layer.ffn_norm = weights.vector(name + "post_attention_layernorm.weight", hidden);
  if (config_.layers[index] == LayerKind::kKda) {
    layer.kda =
        std::make_unique<KdaLayer>(config_, weights, name + "self_attn.", layout_.kda[index]);
  } else {
    layer.mla = std::make_unique<MlaLayer>(config_, weights, name + "self_attn.",
                                           layout_.mla[index], options_);
  }
  layer.ffn = load_ffn_layer(config_, weights, index, name);
  return layer;
}

void HybridNetwork::load_head(PackedWeights& weights) {
  gains_.load(weights);
  output_norm_ = weights.vector("model.norm.weight", config_.hidden);
  lm_head_ = config_.tied_embeddings ? weights.pack(embedding_)
                                     : weights.matrix("lm_head", config_.vocab, config_.hidden);
}

CacheGeometry HybridNetwork::geometry() const {
  return {layout_.state_bytes, layout_.page_bytes, options_.page_tokens};
}

void HybridNetwork::forward(kernels::Ops& ops, const ForwardBatch& batch,
                            const CacheMemory& memory, Workspace& work,
                            const NetworkAdapter* adapter) const {
  const size_t rows = batch.view.row_count;
  VERIFY(rows > 0 && rows <= options_.max_rows);
  VERIFY(batch.tokens.size() == rows);
  ResidualStream& stream = work.stream;

  if (work.timer != nullptr) work.timer->start();
  ops.embed(embedding_, batch.tokens, stream.begin(gains_, rows));
  for (uint32_t index = 0; index < config_.layer_count(); ++index) {
    const Layer& layer = layers_[index];
    const LayerAdapterUse use = {adapter == nullptr ? nullptr : &adapter->layer(index),
                                 &work.adapter};
    const auto& attention = work.sublayer(2 * size_t{index});
    stream.attention_input(ops, index, layer.attention_norm.data(), attention.normed.rows());
    lap(work.timer, NetworkPart::kResiduals);
    if (layer.kda != nullptr) {
      layer.kda->forward(ops, attention.normed.rows(), batch, memory, work.kda(index),
                         attention.out.rows(), use);
    } else {
      layer.mla->forward(ops, attention.normed.rows(), batch.view, memory, work.mla(index),
                         attention.out.rows(), use);
    }
    lap(work.timer, layer.kda != nullptr ? NetworkPart::kKda : NetworkPart::kMla);
    stream.add(attention.out.rows());
    const auto& ffn = work.sublayer(2 * size_t{index} + 1);
    stream.ffn_input(ops, index, layer.ffn_norm.data(), ffn.normed.rows());
    lap(work.timer, NetworkPart::kResiduals);
    layer.ffn->forward(ops, ffn.normed.rows(), rows, work.ffn(index), ffn.out.rows(), use);
    lap(work.timer, config_.is_moe(index) ? NetworkPart::kMixture : NetworkPart::kDense);
    stream.add(ffn.out.rows());
  }
  read_out(ops, batch, work);
  lap(work.timer, NetworkPart::kResiduals);
}

// The readout and the last norm are computed for the wanted rows only, gathered in runs of
// neighbours; the head, whose output is far wider, when it is asked for.
void HybridNetwork::read_out(kernels::Ops& ops, const ForwardBatch& batch, Workspace& work) const {
  const auto wanted = batch.logit_rows;
  work.head_rows = wanted.size();
  if (wanted.empty()) return;
  VERIFY(wanted.size() <= options_.max_rows);
  const auto gathered = work.head.rows();
  for (size_t i = 0; i < wanted.size();) {
    size_t run = 1;
    while (i + run < wanted.size() && wanted[i + run] == wanted[i] + run) ++run;
    VERIFY(wanted[i] + run <= batch.view.row_count);
    work.stream.read_out(ops, wanted[i], run, output_norm_.data(),
                         {gathered.data + i * gathered.ld, gathered.ld});
    i += run;
  }
}

void HybridNetwork::logits(kernels::Ops& ops, Workspace& work, size_t first, size_t count,
                           float* out) const {
  VERIFY(count <= work.head_rows && first <= work.head_rows - count);
  const auto rows = work.head.rows();
  ops.matmul({rows.data + first * rows.ld, rows.ld}, *lm_head_, {out, config_.vocab}, count);
}

}  // namespace runtime
