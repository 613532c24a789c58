#include "runtime/hybrid_model.hpp"

#include <string>

#include "kernels/base/verify.hpp"

namespace runtime {

Workspace::Workspace(const ModelConfig& config, size_t max_rows)
    : stream(config, max_rows),
      normed(max_rows, config.hidden),
      sublayer(max_rows, config.hidden),
      head(max_rows, config.hidden),
      kda(config, max_rows),
      mla(config, max_rows),
      ffn(config, max_rows) {}

HybridModel::HybridModel(const ModelConfig& config, const WeightsFile& file, kernels::Ops& ops,
                         const ModelOptions& options)
    : config_(config),
      options_(options),
      ops_(ops),
      layout_(config, options.page_tokens, options.kv_dtype),
      work_(config, options.max_rows) {
  PackedWeights weights(file, ops);
  load_embedding(weights);
  for (uint32_t layer = 0; layer < config_.layer_count(); ++layer)
    layers_.push_back(load_layer(weights, layer));
  load_head(weights);
  weight_bytes_ = weights.bytes() + embedding_bytes_.size();
}

void HybridModel::load_embedding(PackedWeights& weights) {
  embedding_ = weights.file().table("model.embed_tokens.weight", config_.vocab, config_.hidden);
  const auto* bytes = static_cast<const std::byte*>(embedding_.data);
  const size_t count =
      size_t{config_.vocab} * config_.hidden * kernels::dtype_bytes(embedding_.dtype);
  embedding_bytes_.assign(bytes, bytes + count);
  embedding_.data = embedding_bytes_.data();
}

HybridModel::Layer HybridModel::load_layer(PackedWeights& weights, uint32_t index) const {
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

void HybridModel::load_head(PackedWeights& weights) {
  work_.stream.load(weights);
  output_norm_ = weights.vector("model.norm.weight", config_.hidden);
  lm_head_ = config_.tied_embeddings ? weights.pack(embedding_)
                                     : weights.matrix("lm_head", config_.vocab, config_.hidden);
}

CacheGeometry HybridModel::geometry() const {
  return {layout_.state_bytes, layout_.page_bytes, options_.page_tokens};
}

void HybridModel::forward(const ForwardBatch& batch, const CacheMemory& memory) {
  const size_t rows = batch.view.row_count;
  VERIFY(rows > 0 && rows <= options_.max_rows);
  VERIFY(batch.tokens.size() == rows);
  const auto normed = work_.normed.rows(), sublayer = work_.sublayer.rows();
  ResidualStream& stream = work_.stream;

  ops_.embed(embedding_, batch.tokens, stream.begin(rows));
  for (uint32_t index = 0; index < config_.layer_count(); ++index) {
    const Layer& layer = layers_[index];
    stream.attention_input(ops_, index, layer.attention_norm.data(), normed);
    if (layer.kda != nullptr) {
      layer.kda->forward(ops_, normed, batch, memory, work_.kda, sublayer);
    } else {
      layer.mla->forward(ops_, normed, batch.view, memory, work_.mla, sublayer);
    }
    stream.add(sublayer);
    stream.ffn_input(ops_, index, layer.ffn_norm.data(), normed);
    layer.ffn->forward(ops_, normed, rows, work_.ffn, sublayer);
    stream.add(sublayer);
  }
  read_out(batch);
}

// The readout and the last norm are computed for the wanted rows only, gathered in runs of
// neighbours; the head, whose output is far wider, when it is asked for.
void HybridModel::read_out(const ForwardBatch& batch) {
  const auto wanted = batch.logit_rows;
  head_rows_ = wanted.size();
  if (wanted.empty()) return;
  VERIFY(wanted.size() <= options_.max_rows);
  const auto gathered = work_.head.rows();
  for (size_t i = 0; i < wanted.size();) {
    size_t run = 1;
    while (i + run < wanted.size() && wanted[i + run] == wanted[i] + run) ++run;
    VERIFY(wanted[i] + run <= batch.view.row_count);
    work_.stream.read_out(ops_, wanted[i], run, output_norm_.data(),
                          {gathered.data + i * gathered.ld, gathered.ld});
    i += run;
  }
}

void HybridModel::logits(size_t first, size_t count, float* out) {
  VERIFY(count <= head_rows_ && first <= head_rows_ - count);
  const auto rows = work_.head.rows();
  ops_.matmul({rows.data + first * rows.ld, rows.ld}, *lm_head_, {out, config_.vocab}, count);
}

std::unique_ptr<Model> load_hybrid_model(const ModelConfig& config, const WeightsFile& weights,
                                         kernels::Ops& ops, const ModelOptions& options) {
  return std::make_unique<HybridModel>(config, weights, ops, options);
}

}  // namespace runtime
