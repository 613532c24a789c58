// A model as the cost model sees it: widths, counts and the pattern of its layers, no weights. From
// a Hugging Face config.json; K3's facts as our own file are in config/geometries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model_config.hpp"

namespace runtime {

enum class KvType : uint8_t { kBf16, kFp8, kF32 };
double bytes_of(KvType type);  // of one element

// Bytes of one weight as it is stored and streamed.
struct WeightBytes {
  double dense = 2;        // bf16
  double experts = 2;      // of the routed experts; MXFP4: 4 bits and 8 for every 32 weights
  double conv_window = 2;  // of an element of a KDA convolution's window
};

struct ModelGeometry {
  // `path`: a config.json or a directory that holds one. Throws std::runtime_error naming file and
  // key.
  static ModelGeometry load(const std::string& path);
  ModelGeometry(const ModelConfig& config, const WeightBytes& weight_bytes);

  struct Layer {
    bool is_mla = false, is_moe = false;
    // Vectors that the attention residual before the sublayer mixes: bank rows and the running sum;
    // 0: none is mixed.
    uint32_t attention_sources = 0, ffn_sources = 0;
    uint32_t bank_rows = 0;  // that exist before this layer
  };
  std::vector<Layer> layers;
  WeightBytes weight_bytes;
  double hidden = 0, vocab = 0;
  double kda_heads = 0, kda_d = 0, conv_width = 0;
  bool kda_full_gate = false;  // else the output gate has two thin products
  double mla_heads = 0, d_nope = 0, d_rope = 0, d_v = 0, kv_lora = 0, q_lora = 0;
  bool mla_gate = false;
  double dense_width = 0;
  double experts = 0, top_k = 0, shared_width = 0, expert_width = 0;
  double latent = 0;  // width the routed experts work in; 0: the hidden width
  bool latent_norm = false;
  // What every token runs through beside routed experts and head, and operations of a token: of
  // the recurrences, and of absorbed attention to one position.
  double shared_params = 0, recurrence_flops = 0, absorbed_flops = 0;

  uint32_t layer_count() const { return static_cast<uint32_t>(layers.size()); }
  uint32_t kda_layers() const;
  uint32_t mla_layers() const;
  double kda_width() const { return kda_heads * kda_d; }
  double kv_row() const { return kv_lora + d_rope; }  // elements that a position caches in a layer
  double routed_width() const { return latent != 0 ? latent : hidden; }
  double expert_params() const { return 3 * expert_width * routed_width(); }  // of one, one layer
  double expert_bytes() const { return expert_params() * weight_bytes.experts; }

  // Of a sequence and one KDA layer, all heads: recurrent state in fp32 and the conv window.
  double recurrent_bytes() const { return kda_heads * kda_d * kda_d * 4; }
  double conv_bytes() const {
    return (conv_width - 1) * 3 * kda_width() * weight_bytes.conv_window;
  }
};

}  // namespace runtime
