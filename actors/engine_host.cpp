#include "actors/engine_host.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "actors/cache_namespace.hpp"
#include "actors/engine_settings.hpp"
#include "actors/sequence_ids.hpp"
#include "kernels/traced_ops.hpp"
#include "runtime/checkpoint_planner.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

memory::CacheSetup cache_setup(const runtime::EngineConfig& config, const LoadedModel& loaded) {
  const runtime::CacheGeometry geometry = loaded.model->geometry();
  memory::CacheSetup setup;
  setup.tree.page_tokens = config.page_tokens;
  setup.tree.grid = runtime::CheckpointPlanner(config.page_tokens).grid();
  setup.arena = {runtime::arena_bytes(config), geometry.state_bytes, geometry.page_bytes};
  setup.state_share = split_share(config.memory);
  setup.eviction = config.eviction;
  setup.costs = {loaded.flops_per_token, loaded.flops_per_token_pair, geometry.state_bytes,
                 geometry.page_bytes};
  setup.host_bytes = runtime::host_bytes(config);
  return setup;
}

std::shared_ptr<memory::HybridCache> build_cache(const memory::CacheSetup& setup) {
  try {
    return memory::make_cache(setup);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("memory_gb: ") + error.what());
  }
}

void check_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path))
    error = std::make_error_code(std::errc::not_a_directory);
  if (!error && ::access(path.c_str(), W_OK) != 0)
    error = std::make_error_code(std::errc::permission_denied);
  if (error) throw std::invalid_argument("host_cache_dir: " + path + ": " + error.message());
}

std::string last_part(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename().string()
                               : normal.parent_path().filename().string();
}

ServiceInfo make_info(const runtime::EngineConfig& config, const runtime::Model& model,
                      uint64_t digest, unsigned threads) {
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
  info.arena_bytes = runtime::arena_bytes(config);
  info.state_bytes = geometry.state_bytes;
  info.page_bytes = geometry.page_bytes;
  info.kernel_target = kernels::cpu_target_name();
  info.device = config.device;
  info.kv_dtype = config.kv_dtype;
  info.weights_digest = digest;
  info.default_reasoning_effort = config.default_reasoning_effort;
  return info;
}

}  // namespace

EngineHost::EngineHost(const runtime::EngineConfig& config, const ModelFactory& factory) {
  check_config(config);
  const unsigned threads = runtime::worker_threads(config);
  device_ = kernels::make_cpu_device();
  ops_ = kernels::make_traced_ops(kernels::make_cpu_ops(threads));
  LoadedModel loaded = factory(*ops_, runtime::model_options(config));

  const memory::CacheSetup setup = cache_setup(config, loaded);
  facts_.cache = build_cache(setup);
  const uint32_t positions_max = facts_.cache->positions_max();
  facts_.limits = {loaded.model->vocab_size(),
                   context_length(config, loaded.max_positions, positions_max), loaded.end_ids};
  facts_.tokenizer = std::move(loaded.tokenizer);
  facts_.info = make_info(config, *loaded.model, loaded.digest, threads);
  facts_.info.context_length = facts_.limits.context_length;
  facts_.info.states_max = facts_.cache->slots_max();
  facts_.info.pages_max = facts_.cache->pool().pages_beside(0);
  facts_.info.has_tokenizer = facts_.tokenizer != nullptr;
  facts_.scheduler.context_length = facts_.limits.context_length;
  facts_.scheduler.page_tokens = config.page_tokens;
  facts_.scheduler.max_running = config.max_running_requests;
  facts_.scheduler.chunk_tokens = config.chunk_tokens;
  facts_.scheduler.pages_max = positions_max / config.page_tokens;
  facts_.scheduler.prefix_cache = config.prefix_cache;
  facts_.arithmetic_id = arithmetic_id(facts_.info);
  facts_.check_moves = config.check_moves;
  if (!config.move_log.empty()) {
    facts_.move_log =
        std::make_shared<memory::MoveLogWriter>(config.move_log, facts_.cache->move_geometry());
  }
  if (!config.event_log.empty()) {
    facts_.scheduler_log =
        std::make_shared<runtime::SchedulerLog>(config.event_log + ".scheduler", facts_.scheduler);
    facts_.cache_log = std::make_shared<memory::CacheLog>(config.event_log + ".cache", setup);
  }

  runtime::EngineLayout layout;
  layout.arena_bytes = runtime::arena_bytes(config);
  layout.states = facts_.cache->pool().state_region();
  layout.pages = facts_.cache->pool().page_region();
  layout.host_bytes = runtime::host_bytes(config);
  const runtime::CacheGeometry geometry = loaded.model->geometry();
  engine_ = std::make_unique<runtime::Engine>(*device_, std::move(loaded.model), layout);
  open_spill(config, geometry);
}

// Fills host memory from the file that the last process left, and names the next one.
void EngineHost::open_spill(const runtime::EngineConfig& config,
                            const runtime::CacheGeometry& geometry) {
  if (config.host_cache_dir.empty()) return;
  check_directory(config.host_cache_dir);
  runtime::SpillTarget target{config.host_cache_dir,
                              {facts_.arithmetic_id, geometry.state_bytes, geometry.page_bytes,
                               config.page_tokens, facts_.cache->tree().config().grid}};
  const runtime::SpillReport loaded = runtime::load_spill(target, *facts_.cache, engine_->host());
  const std::string file = memory::spill_path(config.host_cache_dir);
  if (!loaded.trouble.empty()) {
    facts_.info.host_cache_note = "host_cache_dir: ignoring " + loaded.trouble;
  } else if (loaded.states + loaded.pages > 0) {
    facts_.info.host_cache_note = "host cache: " + runtime::spill_text(loaded) + " from " + file;
  }
  engine_->spill_to(std::move(target));
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
