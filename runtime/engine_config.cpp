#include "runtime/engine_config.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace runtime {

kernels::DType kv_dtype(const std::string& name) {
  if (name == "f32") return kernels::DType::kF32;
  if (name == "bf16") return kernels::DType::kBF16;
  throw std::invalid_argument("kv_dtype: \"" + name + "\" is unknown; f32 and bf16 exist");
}

uint64_t arena_bytes(const EngineConfig& config) {
  return static_cast<uint64_t>(config.memory_gb * 1024.0 * 1024.0 * 1024.0);
}

uint64_t host_bytes(const EngineConfig& config) {
  return static_cast<uint64_t>(config.host_cache_gb * 1024.0 * 1024.0 * 1024.0);
}

unsigned worker_threads(const EngineConfig& config) {
  return config.threads != 0 ? config.threads : std::max(1u, std::thread::hardware_concurrency());
}

ModelOptions model_options(const EngineConfig& config) {
  ModelOptions options;
  options.page_tokens = config.page_tokens;
  options.kv_dtype = kv_dtype(config.kv_dtype);
  options.max_rows = config.chunk_tokens;
  return options;
}

}  // namespace runtime
