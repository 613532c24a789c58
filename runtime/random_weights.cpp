#include "runtime/random_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/base/dtype.hpp"
#include "runtime/counter_random.hpp"
#include "runtime/mxfp4.hpp"

namespace runtime {

namespace {

using Shape = std::vector<uint64_t>;
// The value of element `index`; must depend on nothing else.
using Value = std::function<double(const CounterRandom& random, uint64_t index)>;

constexpr double kBranchGain =
    0.25;  // projections that write into the residual stream: keeps the sum well conditioned

class Builder {
 public:
  Builder(const ModelConfig& config, const RandomWeightsOptions& options, SafeTensorsWriter& writer)
      : config_(config), options_(options), writer_(writer) {}

  void add_all();

 private:
  // Every value is rounded to bf16 first, fp32 tensors too: the last bit of a logarithm then cannot
  // differ between machines.
  void tensor(const std::string& name, const char* dtype, Shape shape, Value value);
  void matrix(const std::string& name, uint64_t n, uint64_t k,
              double gain = 1.0);  // variance gain^2 from unit inputs
  void packed(const std::string& name, uint64_t n, uint64_t k, double gain);
  void norm(const std::string& name, uint64_t width, const char* dtype = "BF16");
  void layer(uint32_t index);
  void kda(const std::string& name);
  void kda_decay(const std::string& name);
  void mla(const std::string& name);
  void mlp(const std::string& name, uint64_t width);
  void mixture(const std::string& name);
  void head();

  const ModelConfig& config_;
  const RandomWeightsOptions& options_;
  SafeTensorsWriter& writer_;
};

void Builder::tensor(const std::string& name, const char* dtype, Shape shape, Value value) {
  const std::string full = options_.prefix + name;
  const bool wide = std::strcmp(dtype, "F32") == 0;
  writer_.add(full, dtype, std::move(shape),
              [random = CounterRandom(options_.seed, name), value = std::move(value),
               wide](std::span<std::byte> data) {
                const size_t element = wide ? 4 : 2;
                for (uint64_t i = 0; i < data.size() / element; ++i) {
                  const uint16_t half =
                      kernels::float_to_bf16(static_cast<float>(value(random, i)));
                  const float full_width = kernels::bf16_to_float(half);
                  if (wide) {
                    std::memcpy(data.data() + i * element, &full_width, element);
                  } else {
                    std::memcpy(data.data() + i * element, &half, element);
                  }
                }
              });
}

void Builder::matrix(const std::string& name, uint64_t n, uint64_t k, double gain) {
  const double scale = gain / std::sqrt(static_cast<double>(k));
  tensor(name + ".weight", "BF16", {n, k},
         [scale](const CounterRandom& random, uint64_t i) { return scale * random.normal(i); });
}

void Builder::packed(const std::string& name, uint64_t n, uint64_t k, double gain) {
  if (!options_.mxfp4_experts) return matrix(name, n, k, gain);
  // Groups differ in size by powers of two, so that every scale byte matters.
  const double scale = gain / std::sqrt(static_cast<double>(k)) / 1.15;
  const auto encode = [random = CounterRandom(options_.seed, name), scale](
                          uint64_t group, std::span<uint8_t, 16> codes) {
    const double group_scale = std::ldexp(scale, static_cast<int>(random.bits(~group) % 4) - 2);
    std::array<float, kMxfp4Group> values{};
    for (uint64_t i = 0; i < kMxfp4Group; ++i) {
      values[i] = static_cast<float>(group_scale * random.normal(group * kMxfp4Group + i));
    }
    return encode_mxfp4(values, codes);
  };
  const uint64_t groups = n * k / kMxfp4Group;
  writer_.add(options_.prefix + name + ".weight_packed", "U8", {n, k / 2},
              [=](std::span<std::byte> data) {
                auto* codes = reinterpret_cast<uint8_t*>(data.data());
                for (uint64_t g = 0; g < groups; ++g)
                  encode(g, std::span<uint8_t, 16>(codes + g * 16, 16));
              });
  writer_.add(options_.prefix + name + ".weight_scale", "U8", {n, k / kMxfp4Group},
              [=](std::span<std::byte> data) {
                std::array<uint8_t, 16> codes{};
                for (uint64_t g = 0; g < groups; ++g)
                  data[g] = static_cast<std::byte>(encode(g, codes));
              });
}

void Builder::norm(const std::string& name, uint64_t width, const char* dtype) {
  tensor(name + ".weight", dtype, {width},
         [](const CounterRandom& random, uint64_t i) { return 1 + 0.15 * random.normal(i); });
}

void Builder::kda_decay(const std::string& name) {
  const uint64_t heads = config_.kda.heads, width = heads * config_.kda.d;
  if (config_.kda.lower_bound) {
    // exp(A_log) around 1; biases so that the log-decay of a token spans about -5 .. -0.005, some
    // channels at the bound.
    const uint64_t padded = std::max<uint64_t>(128, heads);  // real files pad A_log with zeros
    tensor(name + "A_log", "F32", {padded}, [heads](const CounterRandom& random, uint64_t i) {
      return i < heads ? random.uniform(i, -0.5, 0.5) : 0.0;
    });
    tensor(name + "dt_bias", "F32", {width}, [width](const CounterRandom& random, uint64_t i) {
      return random.uniform(width + i) < 0.08 ? 3.0 : random.uniform(i, -7.0, -1.0);
    });
    return;
  }
  // Without a bound: rates of 1 .. 8 and one head of 300, whose gates overflow careless arithmetic.
  tensor(name + "A_log", "F32", {1, 1, heads, 1}, [](const CounterRandom& random, uint64_t i) {
    return i == 0 ? std::log(300.0) : std::log(random.uniform(i, 1.0, 8.0));
  });
  tensor(name + "dt_bias", "F32", {width}, [](const CounterRandom& random, uint64_t i) {
    const double step = std::exp(random.uniform(i, std::log(2e-3), std::log(0.1)));
    return step + std::log(-std::expm1(-step));  // softplus of this is `step`
  });
}

void Builder::kda(const std::string& name) {
  const uint64_t hidden = config_.hidden, d = config_.kda.d, heads = config_.kda.heads,
                 width = heads * d;
  const uint64_t taps = config_.kda.conv_width;
  for (const char* part : {"q", "k", "v"}) {
    matrix(name + part + "_proj", width, hidden, 1.5);
    tensor(name + part + "_conv1d.weight", "F32", {width, 1, taps},
           [taps](const CounterRandom& random, uint64_t i) {
             return 0.3 * random.normal(i) +
                    0.8 / static_cast<double>(uint64_t{1}
                                              << (taps - 1 - i % taps));  // recent taps weigh most
           });
  }
  matrix(name + "f_a_proj", d, hidden);
  matrix(name + "f_b_proj", width, d);
  matrix(name + "b_proj", heads, hidden);
  kda_decay(name);
  if (config_.kda.full_rank_gate) {
    matrix(name + "g_proj", width, hidden);
  } else {
    matrix(name + "g_a_proj", d, hidden);
    matrix(name + "g_b_proj", width, d);
  }
  norm(name + "o_norm", d, "F32");
  matrix(name + "o_proj", hidden, width, 2.0 * kBranchGain);
}

void Builder::mla(const std::string& name) {
  const MlaConfig& m = config_.mla;
  const uint64_t hidden = config_.hidden, query = uint64_t{m.heads} * (m.d_nope + m.d_rope);
  if (m.q_lora != 0) {
    matrix(name + "q_a_proj", m.q_lora, hidden);
    norm(name + "q_a_layernorm", m.q_lora);
    matrix(name + "q_b_proj", query, m.q_lora, 1.5);
  } else {
    matrix(name + "q_proj", query, hidden, 1.5);
  }
  matrix(name + "kv_a_proj_with_mqa", uint64_t{m.kv_lora} + m.d_rope, hidden);
  norm(name + "kv_a_layernorm", m.kv_lora);
  matrix(name + "kv_b_proj", uint64_t{m.heads} * (m.d_nope + m.d_v), m.kv_lora, 1.5);
  if (m.output_gate) matrix(name + "g_proj", uint64_t{m.heads} * m.d_v, hidden);
  matrix(name + "o_proj", hidden, uint64_t{m.heads} * m.d_v, 2.0 * kBranchGain);
}

void Builder::mlp(const std::string& name, uint64_t width) {
  matrix(name + "gate_proj", width, config_.hidden, 1.5);
  matrix(name + "up_proj", width, config_.hidden, 1.5);
  matrix(name + "down_proj", config_.hidden, width, 1.5 * kBranchGain);
}

void Builder::mixture(const std::string& name) {
  const FfnConfig& f = config_.ffn;
  const uint64_t hidden = config_.hidden, width = f.latent != 0 ? f.latent : hidden;
  matrix(name + "gate", f.experts, hidden, 1.5);
  tensor(name + "gate.e_score_correction_bias", "F32", {f.experts},
         [](const CounterRandom& random, uint64_t i) { return 0.1 * random.normal(i); });
  if (f.latent != 0) {
    matrix(name + "routed_expert_down_proj", f.latent, hidden);
    matrix(name + "routed_expert_up_proj", hidden, f.latent, kBranchGain);
    if (f.latent_norm) norm(name + "routed_expert_norm", f.latent);
  }
  for (uint32_t expert = 0; expert < f.experts; ++expert) {
    const std::string part = name + "experts." + std::to_string(expert) + ".";
    packed(part + "w1", f.expert_width, width, 1.5);
    packed(part + "w3", f.expert_width, width, 1.5);
    packed(part + "w2", width, f.expert_width, f.latent != 0 ? 1.5 : 1.5 * kBranchGain);
  }
  if (f.shared_experts != 0)
    mlp(name + "shared_experts.", uint64_t{f.shared_experts} * f.expert_width);
}

void Builder::layer(uint32_t index) {
  const std::string name = "model.layers." + std::to_string(index) + ".";
  norm(name + "input_layernorm", config_.hidden);
  norm(name + "post_attention_layernorm", config_.hidden);
  if (config_.residual_block != 0) {
    for (const char* mix : {"self_attention_res", "mlp_res"}) {
      norm(name + mix + "_norm", config_.hidden);
      matrix(name + mix + "_proj", 1, config_.hidden);  // scores of unit variance
    }
  }
  if (config_.layers[index] == LayerKind::kKda) {
    kda(name + "self_attn.");
  } else {
    mla(name + "self_attn.");
  }
  if (config_.is_moe(index)) {
    mixture(name + "block_sparse_moe.");
  } else {
    mlp(name + "mlp.", config_.ffn.dense_width);
  }
}

void Builder::head() {
  const uint64_t hidden = config_.hidden, base = config_.vocab - 256;
  if (config_.residual_block != 0) {
    norm("model.output_attn_res_norm", hidden);
    matrix("model.output_attn_res_proj", 1, hidden);
  }
  norm("model.norm", hidden);
  if (config_.tied_embeddings) return;
  const double scale = 1.5 / std::sqrt(static_cast<double>(hidden));
  tensor("lm_head.weight", "BF16", {config_.vocab, hidden},
         [=, readable = options_.readable_head](const CounterRandom& random, uint64_t i) {
           const uint64_t id = i / hidden;
           const bool likely = (id >= 0x20 && id < 0x7f) || (id >= base + 2 && id <= base + 5);
           return scale * (readable && !likely ? 0.5 : 1.0) * random.normal(i);
         });
}

void Builder::add_all() {
  tensor("model.embed_tokens.weight", "BF16", {config_.vocab, config_.hidden},
         [](const CounterRandom& random, uint64_t i) { return random.normal(i); });
  for (uint32_t index = 0; index < config_.layer_count(); ++index) layer(index);
  head();
}

}  // namespace

void add_random_weights(const ModelConfig& config, const RandomWeightsOptions& options,
                        SafeTensorsWriter& writer) {
  Builder(config, options, writer).add_all();
}

}  // namespace runtime
