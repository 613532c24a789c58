#include "runtime/state_layout.hpp"

namespace runtime {

namespace {

constexpr uint64_t kAlignment = 64;  // one cache line, and one AVX-512 vector

// Takes `bytes` at the end of what is used so far and returns where they start.
uint64_t take(uint64_t& used, uint64_t bytes) {
  const uint64_t begin = used;
  used = (used + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

}  // namespace

StateLayout::StateLayout(const ModelConfig& config, uint32_t page_tokens, kernels::DType kv_dtype)
    : kda(config.layers.size()), mla(config.layers.size()) {
  const uint64_t width = uint64_t{config.kda.heads} * config.kda.d;
  const uint64_t recurrent = width * config.kda.d * sizeof(float);
  const uint64_t conv = (config.kda.conv_width - uint64_t{1}) * 3 * width * sizeof(float);
  const uint64_t row =
      (uint64_t{config.mla.kv_lora} + config.mla.d_rope) * kernels::dtype_bytes(kv_dtype);
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    if (config.layers[layer] == LayerKind::kKda) {
      kda[layer].recurrent = take(state_bytes, recurrent);
      kda[layer].conv = take(state_bytes, conv);
    } else {
      mla[layer] = take(page_bytes, row * page_tokens);
    }
  }
}

}  // namespace runtime
