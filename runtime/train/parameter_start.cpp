#include "runtime/train/parameter_start.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/counter_random.hpp"

namespace runtime {

namespace {

constexpr double kEmbeddingScale = 0.5, kHeadScale = 0.3;
constexpr float kLookUpShare = 0.5f;  // of what a head looks up, in the stream
constexpr float kBeforeShare = 4;     // of the token before, against other writers' share

bool ends_with(const std::string& name, const char* end) { return name.ends_with(end); }

// Whether a matrix writes into the residual stream.
bool writes_stream(const std::string& name) {
  return ends_with(name, "o_proj.weight") || ends_with(name, "down_proj.weight") ||
         ends_with(name, "routed_expert_up_proj.weight");
}

// What a head of a KDA layer does before it has learnt anything. Its state stores what v says under
// k and is asked with q. With the same projection in both, k's convolution looking at the token
// before and q's at the current one, a head repeats what followed the last time: look-up in the
// prompt, which training finds late or never when it starts from noise (mimetic initialisation,
// Trockman et al. 2024, is the idea).
enum class HeadStart {
  kBefore,      // tells which token stood before the current one
  kFollows,     // what followed the current token the last time
  kFollowsPair  // the same, but half of its channels compare the token before
};

HeadStart head_start(uint64_t head, uint64_t heads) {
  constexpr std::array kOfQuarters{HeadStart::kBefore, HeadStart::kFollows, HeadStart::kFollows,
                                   HeadStart::kFollowsPair};
  return kOfQuarters[4 * head / heads];
}

// How many tokens back a convolution looks at first.
uint64_t looks_back(char part, HeadStart start, uint64_t channel) {
  if (start == HeadStart::kBefore) return part == 'v' ? 1 : 0;
  if (part == 'v') return 0;
  return (part == 'k' ? 1 : 0) + (start == HeadStart::kFollowsPair ? channel % 2 : 0);
}

float look_up_tap(const Parameter& p, const KdaConfig& kda, const CounterRandom& random,
                  uint64_t index) {
  const uint64_t taps = p.shape.back(), channel = index / taps, back = taps - 1 - index % taps;
  const char part = p.name[p.name.size() - std::strlen("k_conv1d.weight")];
  const HeadStart start = head_start(channel / kda.d, kda.heads);
  const double main = back == looks_back(part, start, channel) ? 0.9 : 0.0;
  return static_cast<float>(main + 0.1 * random.normal(index));
}

// The start of element `index` of a parameter: unit variance through the projections, smaller where
// they write into the stream; mixes that average their sources (a score of 0); decays of half-lives
// from one token to hundreds, evenly on a logarithmic scale.
float initial_value(const Parameter& p, const ModelConfig& config, const CounterRandom& random,
                    uint64_t index) {
  const std::string& name = p.name;
  if (ends_with(name, "e_score_correction_bias") || ends_with(name, "A_log")) return 0;
  if (ends_with(name, "_res_proj.weight")) return 0;
  if (name.find("norm") != std::string::npos) return 1;
  if (ends_with(name, "dt_bias")) {
    // With A_log 0, K3's gate is -5 sigmoid(dt): about -0.002 .. -1.
    return static_cast<float>(random.uniform(index, -7.8, -1.4));
  }
  if (ends_with(name, "conv1d.weight")) {
    const uint64_t taps = p.shape.back();
    return static_cast<float>((index % taps == taps - 1 ? 0.7 : 0.0) + 0.2 * random.normal(index));
  }
  double scale = 1 / std::sqrt(static_cast<double>(p.shape.back()));
  if (name == "model.embed_tokens.weight") scale = kEmbeddingScale;
  if (name == "lm_head.weight") scale *= kHeadScale;
  if (ends_with(name, ".gate.weight")) scale *= 0.5;
  if (writes_stream(name)) scale /= std::sqrt(2.0 * config.layer_count());
  return static_cast<float>(scale * random.normal(index));
}

// Where a look-up starts otherwise, element by element: convolutions, and what is looked up is
// forgotten after tens to thousands of tokens.
float look_up_value(const Parameter& p, const ModelConfig& config, const CounterRandom& random,
                    uint64_t index) {
  if (ends_with(p.name, "conv1d.weight")) return look_up_tap(p, config.kda, random, index);
  if (ends_with(p.name, "dt_bias") &&
      head_start(index / config.kda.d, config.kda.heads) != HeadStart::kBefore) {
    return static_cast<float>(random.uniform(index, -10.0, -5.0));
  }
  return initial_value(p, config, random, index);
}

// Row-major [rows, columns].
struct Matrix {
  size_t rows = 0, columns = 0;
  float* data = nullptr;
  float& at(size_t row, size_t column) const { return data[row * columns + column]; }
};

class LookUpStart {
 public:
  LookUpStart(const ModelConfig& config, const ParameterLayout& layout, float* masters)
      : config_(config), layout_(layout), masters_(masters) {}

  void prepare() {
    compare_with_embeddings();
    std::vector<float> before(config_.hidden * config_.hidden, 0.0f);
    for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
      const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.";
      if (config_.layers[layer] == LayerKind::kKda) {
        prepare_kda(name, {config_.hidden, config_.hidden, before.data()});
      } else if (config_.mla.q_lora >= config_.mla.kv_lora + config_.mla.d_rope) {
        prepare_mla(name, {config_.hidden, config_.hidden, before.data()});
      }
    }
  }

 private:
  Matrix matrix(const std::string& name) const {
    const Parameter& p = layout_.at(name + ".weight");
    return {p.shape[0], p.shape[1], masters_ + p.offset};
  }

  void compare_with_embeddings() {
    const Matrix embedding = matrix("model.embed_tokens"), head = matrix("lm_head");
    const double width = static_cast<double>(head.columns);
    const double scale = kHeadScale / std::sqrt(width) / kEmbeddingScale;
    for (size_t i = 0; i < head.rows * head.columns; ++i)
      head.data[i] = static_cast<float>(scale * embedding.data[i]);
  }

  // Queries ask as keys are stored, and what is looked up comes out as it went in. `before` grows
  // by what the stream tells of the token before, as a map of that token's embedding.
  void prepare_kda(const std::string& name, const Matrix& before) {
    const Matrix query = matrix(name + "q_proj"), key = matrix(name + "k_proj");
    const Matrix value = matrix(name + "v_proj"), out = matrix(name + "o_proj");
    std::copy_n(key.data, key.rows * key.columns, query.data);
    for (size_t channel = 0; channel < value.rows; ++channel) {
      const bool is_before =
          head_start(channel / config_.kda.d, config_.kda.heads) == HeadStart::kBefore;
      for (size_t i = 0; i < out.rows; ++i) {
        float& to = out.at(i, channel);
        to = is_before ? kBeforeShare * to : kLookUpShare * value.at(channel, i);
        for (size_t j = 0; is_before && j < before.columns; ++j)
          before.at(i, j) += to * value.at(channel, j);
      }
    }
  }

  // Queries are made of the current token as keys are of the token before; the value comes out as
  // it went in. So it attends to what followed the current token, however long ago.
  void prepare_mla(const std::string& name, const Matrix& before) {
    const MlaConfig& mla = config_.mla;
    const Matrix query_in = matrix(name + "q_a_proj"), query = matrix(name + "q_b_proj");
    const Matrix latent = matrix(name + "kv_a_proj_with_mqa"), expand = matrix(name + "kv_b_proj");
    const Matrix out = matrix(name + "o_proj");
    for (size_t row = 0; row < latent.rows; ++row) {
      const auto to = std::span(&query_in.at(row, 0), query_in.columns);
      product({1, latent.columns, &latent.at(row, 0)}, before, to);
      normalise(to);
    }
    const size_t d_key = mla.d_nope + mla.d_rope, d_kv = mla.d_nope + mla.d_v;
    for (size_t head = 0; head < mla.heads; ++head) {
      for (size_t i = 0; i < d_key; ++i) {
        std::fill_n(&query.at(head * d_key + i, 0), query.columns, 0.0f);
        if (i < mla.d_nope) {
          std::copy_n(&expand.at(head * d_kv + i, 0), mla.kv_lora, &query.at(head * d_key + i, 0));
        } else {
          query.at(head * d_key + i, mla.kv_lora + i - mla.d_nope) = 1;
        }
      }
      std::vector<float> row(latent.columns);
      for (size_t i = 0; i < mla.d_v; ++i) {
        product({1, mla.kv_lora, &expand.at(head * d_kv + mla.d_nope + i, 0)},
                {mla.kv_lora, latent.columns, latent.data}, row);
        for (size_t j = 0; j < out.rows; ++j)
          out.at(j, head * mla.d_v + i) = kLookUpShare * row[j];
      }
    }
  }

  // One row: left [1, n] times right [n, m].
  static void product(const Matrix& left, const Matrix& right, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0f);
    for (size_t i = 0; i < right.rows; ++i)
      for (size_t j = 0; j < out.size(); ++j) out[j] += left.data[i] * right.at(i, j);
  }

  // To a length of 1, which is that of a row of unit variance.
  static void normalise(std::span<float> row) {
    float sum = 0;
    for (const float one : row) sum += one * one;
    if (sum == 0) return;  // no layer before tells of the token before
    for (float& one : row) one /= std::sqrt(sum);
  }

  const ModelConfig& config_;
  const ParameterLayout& layout_;
  float* masters_;
};

}  // namespace

void initialise_parameters(const ModelConfig& config, const ParameterLayout& layout,
                           ParameterStart start, uint64_t seed, float* masters) {
  const auto value = start == ParameterStart::kLookUp ? look_up_value : initial_value;
  for (const Parameter& p : layout.all()) {
    const CounterRandom random(seed, p.name);
    for (size_t i = 0; i < p.count; ++i) masters[p.offset + i] = value(p, config, random, i);
  }
  if (start == ParameterStart::kLookUp) LookUpStart(config, layout, masters).prepare();
}

}  // namespace runtime
