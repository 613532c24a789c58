#include "actors/engine_settings.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "memory/ids.hpp"
#include "runtime/chat.hpp"
#include "runtime/checkpoint_planner.hpp"

namespace actors {
namespace {

constexpr uint32_t kPageTokensMax = 1024;

void demand(bool fine, const std::string& message) {
  if (!fine) throw std::invalid_argument(message);
}

bool is_cuda(const std::string& device) {
  return device == "cuda" || device.rfind("cuda:", 0) == 0;
}

}  // namespace

std::optional<double> split_share(const std::string& memory) {
  if (memory == "unified") return std::nullopt;
  constexpr std::string_view kSplit = "split:";
  double share = 0;
  if (memory.rfind(kSplit, 0) == 0) {
    const char* end = memory.data() + memory.size();
    const auto read = std::from_chars(memory.data() + kSplit.size(), end, share);
    if (read.ec == std::errc() && read.ptr == end && share > 0 && share < 1) return share;
  }
  throw std::invalid_argument(
      "memory: \"" + memory +
      "\" is unknown; unified and split:RATIO exist, RATIO between 0 and 1");
}

uint32_t context_length(const runtime::EngineConfig& config, uint32_t model_max,
                        uint32_t positions_max) {
  const uint32_t own_max = model_max == 0 ? std::numeric_limits<uint32_t>::max() : model_max;
  const uint32_t asked = config.context_length;
  if (asked == 0) return std::min(positions_max, own_max);
  demand(asked <= own_max, "context_length: " + std::to_string(asked) +
                               " is more than the model's maximum of " + std::to_string(own_max));
  demand(asked <= positions_max,
         "context_length: " + std::to_string(asked) + " needs " +
             std::to_string(memory::pages_for(asked, config.page_tokens)) +
             " pages, memory_gb = " + std::to_string(config.memory_gb) + " leaves " +
             std::to_string(positions_max / config.page_tokens) + " beside one state (" +
             std::to_string(positions_max) + " tokens); raise memory_gb");
  return asked;
}

void check_config(const runtime::EngineConfig& config) {
  demand(!is_cuda(config.device), "device: the CUDA backend has no model kernels yet; use cpu");
  demand(config.device == "cpu" || config.device == "null",
         "device: \"" + config.device + "\" is unknown; cpu, cuda and null exist");
  runtime::kv_dtype(config.kv_dtype);
  demand(config.page_tokens > 0 && (config.page_tokens & (config.page_tokens - 1)) == 0 &&
             config.page_tokens <= kPageTokensMax,
         "page_tokens: must be a power of two up to " + std::to_string(kPageTokensMax) + ", got " +
             std::to_string(config.page_tokens));
  // Chunks may end anywhere; smaller ones than the grid of checkpoints would never save a state at
  // their end.
  const uint32_t grid = runtime::CheckpointPlanner(config.page_tokens).grid();
  demand(config.chunk_tokens >= grid, "chunk_tokens: must be at least " + std::to_string(grid) +
                                          " and at least page_tokens, got " +
                                          std::to_string(config.chunk_tokens));
  demand(config.chunk_tokens <= 65536,
         "chunk_tokens: must be at most 65536, got " + std::to_string(config.chunk_tokens));
  demand(config.max_running_requests > 0, "max_running_requests: must be at least 1");
  demand(config.max_running_requests <= config.chunk_tokens,
         "max_running_requests: " + std::to_string(config.max_running_requests) +
             " sequences do not fit in a step of chunk_tokens = " +
             std::to_string(config.chunk_tokens));
  demand(config.memory_gb > 0 && config.memory_gb <= 1048576,
         "memory_gb: must lie between 0 and 1048576, got " + std::to_string(config.memory_gb));
  split_share(config.memory);
  demand(
      config.host_cache_gb >= 0 && config.host_cache_gb <= 1048576,
      "host_cache_gb: must lie between 0 and 1048576, got " + std::to_string(config.host_cache_gb));
  demand(config.host_cache_gb == 0 || config.prefix_cache,
         "host_cache_gb: holds what the prefix cache evicts; it needs prefix_cache on");
  demand(config.host_cache_dir.empty() || config.host_cache_gb > 0,
         "host_cache_dir: fills host memory at the start; it needs host_cache_gb");
  demand(config.eviction == "benefit" || config.eviction == "lru",
         "eviction: \"" + config.eviction + "\" is unknown; benefit and lru exist");
  demand(config.event_log.empty() || config.host_cache_dir.empty(),
         "event_log: cannot tell what host_cache_dir filled the cache with; give one of them");
  demand(config.threads <= 1024,
         "threads: must be at most 1024, got " + std::to_string(config.threads));
  const std::string& effort = config.default_reasoning_effort;
  demand(
      std::find(runtime::kEfforts.begin(), runtime::kEfforts.end(), effort) !=
          runtime::kEfforts.end(),
      "default_reasoning_effort: \"" + effort + "\" is unknown; low, medium, high and max exist");
}

}  // namespace actors
