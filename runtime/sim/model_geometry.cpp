#include "runtime/sim/model_geometry.hpp"

#include <algorithm>
#include <filesystem>

#include "kernels/base/verify.hpp"
#include "runtime/model_costs.hpp"
#include "runtime/text_file.hpp"

namespace runtime {

double bytes_of(KvType type) {
  switch (type) {
    case KvType::kBf16:
      return 2;
    case KvType::kFp8:
      return 1;
    case KvType::kF32:
      return 4;
  }
  VERIFY(false);
}

ModelGeometry ModelGeometry::load(const std::string& path) {
  const std::string file = std::filesystem::is_directory(path) ? path + "/config.json" : path;
  const ModelConfig config = ModelConfig::parse(read_text(file), file);
  WeightBytes bytes;
  if (config.packed_experts) bytes.experts = 4.25 / 8;
  return {config, bytes};
}

ModelGeometry::ModelGeometry(const ModelConfig& config, const WeightBytes& stored)
    : weight_bytes(stored),
      hidden(config.hidden),
      vocab(config.vocab),
      kda_heads(config.kda.heads),
      kda_d(config.kda.d),
      conv_width(config.kda.conv_width),
      kda_full_gate(config.kda.full_rank_gate),
      mla_heads(config.mla.heads),
      d_nope(config.mla.d_nope),
      d_rope(config.mla.d_rope),
      d_v(config.mla.d_v),
      kv_lora(config.mla.kv_lora),
      q_lora(config.mla.q_lora),
      mla_gate(config.mla.output_gate),
      dense_width(config.ffn.dense_width),
      experts(config.ffn.experts),
      top_k(config.ffn.top_k),
      shared_width(static_cast<double>(config.ffn.shared_experts) * config.ffn.expert_width),
      expert_width(config.ffn.expert_width),
      latent(config.ffn.latent),
      latent_norm(config.ffn.latent_norm && config.ffn.latent != 0) {
  const ModelCosts costs(config, {}, kernels::DType::kBF16);
  shared_params = static_cast<double>(costs.shared_params);
  recurrence_flops = static_cast<double>(costs.recurrence_flops);
  absorbed_flops = static_cast<double>(costs.absorbed_flops);
  const uint32_t block = config.residual_block;
  for (uint32_t index = 0; index < config.layer_count(); ++index) {
    Layer layer;
    layer.is_mla = config.layers[index] == LayerKind::kMla;
    layer.is_moe = config.is_moe(index);
    if (block != 0) {
      // The running sum joins the bank before every block-th layer.
      layer.bank_rows = (index + block - 1) / block;
      layer.attention_sources = layer.bank_rows == 0 ? 0 : layer.bank_rows + 1;
      layer.ffn_sources = index / block + 2;
    }
    layers.push_back(layer);
  }
}

uint32_t ModelGeometry::mla_layers() const {
  return static_cast<uint32_t>(
      std::count_if(layers.begin(), layers.end(), [](const Layer& layer) { return layer.is_mla; }));
}

uint32_t ModelGeometry::kda_layers() const { return layer_count() - mla_layers(); }

}  // namespace runtime
