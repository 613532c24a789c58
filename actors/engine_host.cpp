#include "actors/engine_host.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "actors/sequence_ids.hpp"
#include "runtime/model_config.hpp"
#include "runtime/trace.hpp"
#include "runtime/weights.hpp"

namespace actors {
namespace {

constexpr uint32_t kChunkTokensMin = 64;  // the KDA chunk: cuts of a prompt fall on multiples of it
constexpr uint32_t kPageTokensMax = 1024;
constexpr uint32_t kNullVocabulary = 512;  // of a null model that has no config.json
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

void demand(bool fine, const std::string& message) {
  if (!fine) throw std::invalid_argument(message);
}

bool is_cuda(const std::string& device) {
  return device == "cuda" || device.rfind("cuda:", 0) == 0;
}

kernels::DType kv_dtype(const std::string& name) {
  if (name == "f32") return kernels::DType::kF32;
  if (name == "bf16") return kernels::DType::kBF16;
  throw std::invalid_argument("kv_dtype: \"" + name + "\" is unknown; f32 and bf16 exist");
}

LoadedModel load_hybrid(const std::string& directory, kernels::Ops& ops,
                        const runtime::ModelOptions& options) {
  const auto config = runtime::ModelConfig::load(directory);
  const auto weights =
      std::make_shared<runtime::WeightsFile>(runtime::WeightsFile::load(directory));
  LoadedModel loaded;
  loaded.weights = weights;
  loaded.model = runtime::load_hybrid_model(config, *weights, ops, options);
  loaded.tokenizer = runtime::Tokenizer::load(directory);
  loaded.max_positions = config.max_positions;
  loaded.end_ids = config.end_ids;
  return loaded;
}

LoadedModel load_null(const std::string& directory, const runtime::ModelOptions& options) {
  LoadedModel loaded;
  uint32_t vocab = kNullVocabulary;
  if (!directory.empty()) {
    const auto config = runtime::ModelConfig::load(directory);
    vocab = config.vocab;
    loaded.tokenizer = runtime::Tokenizer::load(directory);
    loaded.max_positions = config.max_positions;
    loaded.end_ids = config.end_ids;
  }
  loaded.model = runtime::make_null_model(vocab, options);
  return loaded;
}

uint64_t pages_of(uint64_t tokens, uint32_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

// The longest sequence that the model and the page pool allow, or the one asked for if they do.
uint32_t context_length(const runtime::EngineConfig& config, uint32_t model_max,
                        const memory::PoolCounts& counts) {
  const uint64_t pool_max = uint64_t{counts.pages.total} * config.page_tokens;
  const uint64_t own_max = model_max == 0 ? std::numeric_limits<uint32_t>::max() : model_max;
  const uint64_t asked = config.context_length;
  if (asked == 0) return static_cast<uint32_t>(std::min(pool_max, own_max));
  demand(asked <= own_max, "context_length: " + std::to_string(asked) +
                               " is more than the model's maximum of " + std::to_string(own_max));
  demand(asked <= pool_max,
         "context_length: " + std::to_string(asked) + " needs " +
             std::to_string(pages_of(asked, config.page_tokens)) + " pages, memory_gb = " +
             std::to_string(config.memory_gb) + " leaves " + std::to_string(counts.pages.total) +
             " (" + std::to_string(pool_max) + " tokens); raise memory_gb or lower state_share");
  return static_cast<uint32_t>(asked);
}

std::unique_ptr<memory::Pool> make_pool(const runtime::EngineConfig& config,
                                        const runtime::CacheGeometry& geometry) {
  memory::PoolConfig pool;
  pool.arena_bytes = static_cast<uint64_t>(config.memory_gb * kGiB);
  pool.state_bytes = geometry.state_bytes;
  pool.page_bytes = geometry.page_bytes;
  pool.state_share = config.state_share;
  pool.max_slots = config.max_running_requests;
  try {
    return memory::make_split_pool(pool);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("memory_gb: ") + error.what());
  }
}

std::string last_part(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename().string()
                               : normal.parent_path().filename().string();
}

ServiceInfo make_info(const runtime::EngineConfig& config, const runtime::Model& model,
                      unsigned threads) {
  const runtime::CacheGeometry geometry = model.geometry();
  ServiceInfo info;
  info.model_path = config.model;
  info.model_name = config.model.empty() ? config.device : last_part(config.model);
  info.vocab_size = model.vocab_size();
  info.page_tokens = config.page_tokens;
  info.chunk_tokens = config.chunk_tokens;
  info.max_running = config.max_running_requests;
  info.max_queue = config.max_queue;
  info.threads = threads;
  info.weight_bytes = model.weight_bytes();
  info.arena_bytes = static_cast<uint64_t>(config.memory_gb * kGiB);
  info.state_bytes = geometry.state_bytes;
  info.page_bytes = geometry.page_bytes;
  info.kernel_target = kernels::cpu_target_name();
  info.device = config.device;
  info.kv_dtype = config.kv_dtype;
  info.default_reasoning_effort = config.default_reasoning_effort;
  return info;
}

}  // namespace

ModelFactory model_factory(const runtime::EngineConfig& config) {
  if (config.device == "null") {
    return [directory = config.model](kernels::Ops&, const runtime::ModelOptions& options) {
      return load_null(directory, options);
    };
  }
  return [directory = config.model](kernels::Ops& ops, const runtime::ModelOptions& options) {
    return load_hybrid(directory, ops, options);
  };
}

void check_config(const runtime::EngineConfig& config) {
  demand(!is_cuda(config.device), "device: the CUDA backend has no model kernels yet; use cpu");
  demand(config.device == "cpu" || config.device == "null",
         "device: \"" + config.device + "\" is unknown; cpu, cuda and null exist");
  kv_dtype(config.kv_dtype);
  demand(config.page_tokens > 0 && (config.page_tokens & (config.page_tokens - 1)) == 0 &&
             config.page_tokens <= kPageTokensMax,
         "page_tokens: must be a power of two up to " + std::to_string(kPageTokensMax) + ", got " +
             std::to_string(config.page_tokens));
  demand(config.chunk_tokens >= std::max(kChunkTokensMin, config.page_tokens),
         "chunk_tokens: must be at least " +
             std::to_string(std::max(kChunkTokensMin, config.page_tokens)) +
             " (the grid of KDA chunks and pages), got " + std::to_string(config.chunk_tokens));
  demand(config.chunk_tokens <= 65536,
         "chunk_tokens: must be at most 65536, got " + std::to_string(config.chunk_tokens));
  demand(config.max_running_requests > 0, "max_running_requests: must be at least 1");
  demand(config.max_running_requests <= config.chunk_tokens,
         "max_running_requests: " + std::to_string(config.max_running_requests) +
             " sequences do not fit in a step of chunk_tokens = " +
             std::to_string(config.chunk_tokens));
  demand(config.memory_gb > 0 && config.memory_gb <= 1048576,
         "memory_gb: must lie between 0 and 1048576, got " + std::to_string(config.memory_gb));
  demand(config.state_share > 0 && config.state_share < 1,
         "state_share: must lie between 0 and 1, got " + std::to_string(config.state_share));
  demand(config.threads <= 1024,
         "threads: must be at most 1024, got " + std::to_string(config.threads));
  const std::string& effort = config.default_reasoning_effort;
  demand(
      effort == "low" || effort == "medium" || effort == "high" || effort == "max",
      "default_reasoning_effort: \"" + effort + "\" is unknown; low, medium, high and max exist");
}

EngineHost::EngineHost(const runtime::EngineConfig& config, const ModelFactory& factory) {
  check_config(config);
  const unsigned threads =
      config.threads != 0 ? config.threads : std::max(1u, std::thread::hardware_concurrency());
  device_ = kernels::make_cpu_device();
  ops_ = kernels::make_cpu_ops(threads);
  runtime::ModelOptions options;
  options.page_tokens = config.page_tokens;
  options.kv_dtype = kv_dtype(config.kv_dtype);
  options.max_rows = config.chunk_tokens;
  LoadedModel loaded = factory(*ops_, options);
  weights_ = std::move(loaded.weights);

  facts_.pool = make_pool(config, loaded.model->geometry());
  const memory::PoolCounts counts = facts_.pool->counts();
  facts_.limits = {loaded.model->vocab_size(), context_length(config, loaded.max_positions, counts),
                   loaded.end_ids};
  facts_.tokenizer = std::move(loaded.tokenizer);
  facts_.info = make_info(config, *loaded.model, threads);
  facts_.info.context_length = facts_.limits.context_length;
  facts_.info.has_tokenizer = facts_.tokenizer != nullptr;
  facts_.scheduler.context_length = facts_.limits.context_length;
  facts_.scheduler.page_tokens = config.page_tokens;
  facts_.scheduler.max_running = config.max_running_requests;
  facts_.scheduler.chunk_tokens = config.chunk_tokens;
  facts_.scheduler.capacity = counts;
  facts_.scheduler.model_end_ids = loaded.end_ids;

  runtime::EngineLayout layout;
  layout.arena_bytes = static_cast<uint64_t>(config.memory_gb * kGiB);
  layout.states = facts_.pool->state_region();
  layout.pages = facts_.pool->page_region();
  engine_ = std::make_unique<runtime::Engine>(*device_, std::move(loaded.model), layout);
}

StepOutcome EngineHost::run(const runtime::StepPlan& plan) {
  StepOutcome outcome{plan.rank_group, std::nullopt, std::nullopt};
  if (runtime::Trace::global().enabled()) {
    for (const auto& command : plan.commands) {
      const auto* forward = std::get_if<runtime::Forward>(&command);
      if (forward == nullptr) continue;
      for (const auto& row : forward->rows)
        runtime::trace_hop(request_of(row.sequence), "worker.run");
    }
  }
  try {
    outcome.result = engine_->run(plan);
  } catch (const std::exception& error) {
    outcome.failure = std::string("a step failed: ") + error.what();
  } catch (...) {
    outcome.failure = "a step failed with an unknown exception";
  }
  return outcome;
}

}  // namespace actors
