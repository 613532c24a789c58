#include "net/replay/hit_check.hpp"

#include <algorithm>
#include <bit>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <numeric>
#include <ostream>
#include <stdexcept>
#include <string>

#include "net/replay/modelled_replay.hpp"
#include "net/replay/scenario_run.hpp"
#include "runtime/checkpoint_planner.hpp"

namespace net {
namespace {

// Every step takes the same time: only the order matters.
class SteadyClock final : public runtime::DeviceClock {
 public:
  runtime::DeviceTimes start(const runtime::DeviceWork&, uint64_t now_ns) override {
    return {now_ns + 1000, now_ns + 1000};
  }
};

constexpr uint64_t kBlockBytes = 64;  // of a state and of a page: there are no bytes
constexpr uint32_t kLongest = 1u << 30;

uint64_t arena_bytes(const Trace& trace, const PromptSource& prompts) {
  uint64_t blocks = 64;
  for (uint32_t i = 0; i < trace.requests.size(); ++i) {
    const uint64_t fresh = trace.requests[i].blocks - trace.requests[i].shared_blocks;
    // Its states beside the pages of its tail and answer.
    blocks += fresh + 8 + prompts.output_tokens(i) / prompts.block_tokens();
  }
  return blocks * kBlockBytes;
}

ModelledReplay::Config config_for(const Trace& trace, const PromptSource& prompts) {
  const uint32_t page = prompts.block_tokens();
  ModelledReplay::Config config;
  config.pace.mode = PaceMode::kSerial;
  auto& scheduler = config.server.scheduler;
  scheduler.page_tokens = page;
  scheduler.context_length = kLongest;
  scheduler.chunk_tokens = kLongest;  // a prompt is one row: no checkpoints at ends of chunks
  scheduler.max_running = 1;
  scheduler.move_ring = 16;
  auto& cache = config.server.cache;
  cache.tree = {page, runtime::CheckpointPlanner(page).grid(), 0};
  cache.arena = {arena_bytes(trace, prompts), kBlockBytes, kBlockBytes};
  cache.eviction = "lru";
  return config;
}

}  // namespace

std::vector<HitRow> check_hits(const Trace& trace) {
  if (!trace.has_prefixes)
    throw std::invalid_argument("trace: it has lengths alone; hits need one with prefixes");
  if (!std::has_single_bit(trace.block_tokens)) {
    throw std::invalid_argument("trace: blocks of " + std::to_string(trace.block_tokens) +
                                " tokens cannot be pages; a page is a power of two");
  }
  PromptOptions options;
  options.whole_blocks = true;
  const PromptSource prompts(trace, options);
  std::vector<uint32_t> sessions(trace.sessions.size());
  std::iota(sessions.begin(), sessions.end(), 0u);
  SteadyClock clock;
  std::vector<HitRow> rows;
  rows.reserve(trace.requests.size());
  ModelledReplay replay(config_for(trace, prompts), trace, sessions, prompts, clock,
                        [&](const PlayRecord& record) {
                          const TraceRequest& request = trace.requests[record.play.request];
                          rows.push_back({record.play.request, request.blocks,
                                          request.shared_blocks,
                                          record.kv_hit / trace.block_tokens,
                                          record.state_hit / trace.block_tokens});
                        });
  replay.run();
  return rows;
}

void write_hits(const std::vector<HitRow>& rows, bool json, std::ostream& out) {
  uint64_t blocks = 0, ideal = 0, kv = 0, usable = 0;
  for (const HitRow& row : rows) {
    blocks += row.blocks, ideal += row.ideal, kv += row.kv, usable += row.usable;
    if (!json) continue;
    out << boost::json::object{{"request", row.request},
                               {"blocks", row.blocks},
                               {"ideal_hit_blocks", row.ideal},
                               {"kv_hit_blocks", row.kv},
                               {"usable_hit_blocks", row.usable}}
        << "\n";
  }
  const boost::json::object sums{{"requests", rows.size()},
                                 {"blocks", blocks},
                                 {"ideal_hit_blocks", ideal},
                                 {"kv_hit_blocks", kv},
                                 {"usable_hit_blocks", usable}};
  if (json) {
    out << sums << "\n";
  } else {
    print_result(sums, out);
  }
}

}  // namespace net
