#include "net/replay/modelled_setup.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stdexcept>

#include "runtime/checkpoint_planner.hpp"

namespace net {
namespace {

namespace fs = std::filesystem;

// What has a slash or ends like a file is a path; all else is a name.
std::string located(const std::string& name, const fs::path& folder, const std::string& ending) {
  const bool is_path = name.find('/') != name.npos || fs::path(name).extension() == ending;
  return is_path ? name : (folder / (name + ending)).string();
}

uint64_t whole_bytes(double bytes) {  // of a block: the pool wants multiples of 64
  return (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
}

memory::CacheSetup cache_setup(const ModelledServer& server, const runtime::StepModel& model) {
  const runtime::RankMemory rank = model.memory();
  memory::CacheSetup setup;
  // A rank's page of so many positions is `context` times as many of a sequence.
  setup.tree.page_tokens = server.page_tokens * rank.context;
  setup.tree.grid = runtime::CheckpointPlanner(setup.tree.page_tokens).grid();
  setup.arena.state_bytes = whole_bytes(rank.state_bytes);
  setup.arena.page_bytes = whole_bytes(server.page_tokens * rank.kv_position_bytes);
  double arena = rank.arena_bytes;
  if (server.kv_tokens > 0) {
    const double pages = server.kv_tokens / setup.tree.page_tokens;
    const double states = 2.0 * server.max_running;  // a working slot each, and one to write
    arena = pages * static_cast<double>(setup.arena.page_bytes) +
            states * static_cast<double>(setup.arena.state_bytes);
  }
  if (arena <= 0)
    throw std::invalid_argument("server.memory-fraction: the weights leave no room for a cache");
  setup.arena.arena_bytes = static_cast<uint64_t>(arena);
  if (server.state_share > 0) setup.state_share = server.state_share;
  setup.eviction = server.eviction;
  // What recomputing costs, in the model's own time.
  runtime::StepShape near, far;
  near.add_prefill(0, server.chunk_tokens);
  far.add_prefill(100000, server.chunk_tokens);
  const double near_us = model.step_us(near), far_us = model.step_us(far);
  setup.costs.flops_per_token = near_us / server.chunk_tokens;
  setup.costs.flops_per_token_pair =
      std::max(far_us - near_us, 0.0) / (100000.0 * server.chunk_tokens);
  setup.costs.state_bytes = setup.arena.state_bytes;
  setup.costs.page_bytes = setup.arena.page_bytes;
  setup.host_bytes = static_cast<uint64_t>(server.host_gb * 1e9);
  return setup;
}

}  // namespace

ModelledSetup make_modelled_setup(const ModelledServer& server,
                                  const std::string& config_directory) {
  const fs::path config(config_directory);
  ModelledSetup out;
  out.device = runtime::read_device(located(server.device, config / "devices", ".toml"));
  const auto geometry =
      runtime::ModelGeometry::load(located(server.model, config / "geometries", ".json"));
  out.model = std::make_unique<runtime::StepModel>(
      out.device, geometry, runtime::parse_layout(server.layout), server.step);
  if (server.speculation.draft_tokens > 0) {
    out.speculation = std::make_unique<runtime::Speculation>(server.speculation, *out.model);
    out.server.speculation = out.speculation.get();
  }
  out.server.cache = cache_setup(server, *out.model);
  runtime::SchedulerConfig& scheduler = out.server.scheduler;
  scheduler.page_tokens = out.server.cache.tree.page_tokens;
  scheduler.context_length = server.context_length;
  scheduler.max_running = server.max_running;
  scheduler.chunk_tokens = server.chunk_tokens;
  scheduler.prefix_cache = server.prefix_cache;
  // One more than the stages hold, so that the first never waits for a plan.
  scheduler.plans_in_flight = static_cast<uint32_t>(out.model->stage_count()) + 1;
  scheduler.move_ring = 1024;
  return out;
}

}  // namespace net
