#include "net/replay/scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "runtime/counter_random.hpp"
#include "runtime/toml_fields.hpp"

namespace net {
namespace {

using runtime::TomlFields;

constexpr double kMost = 1e12;
constexpr uint64_t kMany = std::numeric_limits<uint32_t>::max();

void read_trace(TomlFields& in, TraceSelection& out) {
  in.texts("files", out.files);
  in.require("files", "the paths of one trace");
  in.whole("sessions", out.sessions, 0, kMany);
  in.whole("min-requests", out.min_requests, 0, kMany);
  in.whole("min-context", out.min_context, 0, kMany);
  in.flag("sub-agents", out.sub_agents);
  in.whole("block-tokens", out.block_tokens, 0, 1u << 16);
}

void read_pace(TomlFields& in, Pace& out) {
  in.one_of("mode", out.mode, {"open", "closed", "serial"});
  in.number("time-scale", out.time_scale, 0, kMost);
  in.flag("think", out.think);
  in.whole("repeat", out.repeat, 1, 1u << 20);
  in.number("spread-s", out.spread_s, 0, kMost);
  in.flag("shuffle", out.shuffle);
  in.number("until-s", out.until_s, 0, kMost);
  uint32_t concurrency = 0;
  in.whole("concurrency", concurrency, 0, kMany);
  if (concurrency > 0) out.phases.push_back({0, concurrency});
  in.tables("phase", [&](TomlFields& phase) {
    PacePhase next;
    phase.number("from-s", next.from_s, 0, kMost);
    phase.whole("concurrency", next.concurrency, 0, kMany);
    if (out.phases.empty() ? next.from_s != 0 : next.from_s <= out.phases.back().from_s) {
      phase.fail("from-s", out.phases.empty()
                               ? "is not 0; the first phase begins at 0 s"
                               : "is not later than the phase before it; `concurrency` beside "
                                 "phases is one that begins at 0 s");
    }
    out.phases.push_back(next);
  });
  if (!out.phases.empty() && out.mode != PaceMode::kClosed)
    in.fail("mode", "is not \"closed\"; a cap on open sessions (concurrency, phase) needs it");
}

void read_faults(TomlFields& in, ClientFaults& out) {
  in.number("leave-share", out.leave_share, 0, 1);
  in.number("deadline-s", out.deadline_s, 0, kMost);
}

// Block drafts: the acceptance of each position, or what it comes to when all are verified.
void read_speculation(TomlFields& in, runtime::SpeculationConfig& out) {
  out.draft_tokens = runtime::kDraftTokens;
  in.whole("draft-tokens", out.draft_tokens, 1, runtime::kDraftTokens);
  in.numbers("acceptance", out.acceptance, 0, 1);
  double length = 0;
  in.number("accept-length", length, 1, 1.0 + runtime::kDraftTokens);
  in.number("confidence-spread", out.spread, 0, 1e3);
  in.flag("trim", out.trim);
  if (in.has("acceptance") == in.has("accept-length"))
    in.fail("acceptance", "is needed, a number for each draft, or accept-length; not both");
  if (in.has("accept-length")) {
    if (!(length > 1 && length < 1.0 + out.draft_tokens))
      in.fail("accept-length", "must be above 1 and below draft-tokens and one");
    out.acceptance.assign(out.draft_tokens, runtime::acceptance_mean(length, out.draft_tokens));
  }
  if (out.acceptance.size() != out.draft_tokens) {
    in.fail("acceptance", "has " + std::to_string(out.acceptance.size()) +
                              " numbers; expected draft-tokens, " +
                              std::to_string(out.draft_tokens));
  }
}

void read_server(TomlFields& in, ModelledServer& out) {
  in.text("device", out.device);
  in.text("model", out.model);
  in.text("layout", out.layout);
  in.one_of("kv", out.step.kv, {"bf16", "fp8", "f32"});
  in.flag("sequence-parallel", out.step.sequence_parallel);
  in.flag("expert-exchange", out.step.expert_exchange);
  in.number("memory-fraction", out.step.memory_fraction, 0, 1);
  in.whole("max-running", out.max_running, 1, 1u << 16);
  in.whole("chunk-tokens", out.chunk_tokens, 64, 1u << 24);
  in.whole("context-length", out.context_length, 64, 1u << 30);
  in.whole("page-tokens", out.page_tokens, 1, 1u << 16);
  in.flag("prefix-cache", out.prefix_cache);
  in.text("eviction", out.eviction);
  in.number("state-share", out.state_share, 0, 1);
  in.number("kv-tokens", out.kv_tokens, 0, kMost);
  in.number("host-gb", out.host_gb, 0, 1e6);
  in.table("speculation", [&](TomlFields& fields) { read_speculation(fields, out.speculation); });
  out.step.drafts = out.speculation.draft_tokens > 0;
}

void read_live(TomlFields& in, LiveServer& out) {
  in.text("url", out.url);
  in.text("api-key", out.api_key);
  in.text("model", out.model);
  in.whole("vocabulary", out.vocabulary, 0, 1u << 31);
  in.flag("text", out.text);
  in.flag("chat", out.chat);
  in.flag("ignore-eos", out.ignore_eos);
  in.whole("retries", out.retries, 0, 1u << 20);
  in.number("silence-s", out.silence_s, 0.001, 1e6);
}

// Its main conversation's, or all.
bool is_wanted(const TraceRequest& request, const TraceSelection& selection) {
  return selection.sub_agents || request.conversation == 0;
}

Scenario read_fields(TomlFields in, const std::string& path) {
  Scenario out;
  out.path = path;
  in.text("name", out.name);
  in.whole("seed", out.seed, 0, uint64_t{1} << 62);
  if (in.has("experiment"))
    in.fail("experiment", "is what `figures` computes; a scenario that plays has a [trace]");
  in.require("trace", "a table with `files`");
  in.table("trace", [&](TomlFields& fields) { read_trace(fields, out.trace); });
  in.table("pace", [&](TomlFields& fields) { read_pace(fields, out.pace); });
  in.table("faults", [&](TomlFields& fields) { read_faults(fields, out.faults); });
  in.table("slo", [&](TomlFields& fields) {
    fields.number("ttft-s", out.slo.ttft_s, 0, kMost);
    fields.number("itl-s", out.slo.itl_s, 0, kMost);
  });
  out.has_server = in.has("server") || !in.has("live");
  in.table("server", [&](TomlFields& fields) { read_server(fields, out.server); });
  in.table("live", [&](TomlFields& fields) { read_live(fields, out.live); });
  in.texts("grid", out.grid);
  in.tables("figure", [&](TomlFields& fields) { out.figures.push_back(read_sweep_figure(fields)); });
  in.finish();
  out.pace.seed = out.faults.seed = out.server.speculation.seed = out.seed;
  out.pace.sub_agents = out.trace.sub_agents;
  return out;
}

}  // namespace

Scenario parse_scenario(std::string_view toml, const std::string& path) {
  return read_fields(TomlFields::parse(toml, path), path);
}

void locate_traces(Scenario& scenario, const std::string& directory) {
  namespace fs = std::filesystem;
  const fs::path own = fs::path(scenario.path).parent_path();
  const fs::path folder = directory.empty() ? own : fs::path(directory);
  // What is absolute stays as it is.
  for (std::string& file : scenario.trace.files) file = (folder / file).string();
}

std::vector<uint32_t> select_sessions(const Trace& trace, const TraceSelection& selection,
                                      uint64_t seed) {
  std::vector<uint32_t> requests(trace.sessions.size(), 0);
  std::vector<uint64_t> context(trace.sessions.size(), 0);
  for (const TraceRequest& request : trace.requests) {
    if (!is_wanted(request, selection)) continue;
    ++requests[request.session];
    context[request.session] = std::max<uint64_t>(
        context[request.session], uint64_t{request.input_tokens} + request.output_tokens);
  }
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < trace.sessions.size(); ++i) {
    if (requests[i] > 0 && requests[i] >= selection.min_requests &&
        context[i] >= selection.min_context) {
      chosen.push_back(i);
    }
  }
  if (chosen.empty())
    throw std::invalid_argument("trace: no session has min-requests and min-context");
  if (selection.sessions > 0 && selection.sessions < chosen.size()) {
    const runtime::CounterRandom random(seed, "sessions");
    std::sort(chosen.begin(), chosen.end(), [&](uint32_t a, uint32_t b) {
      return random.bits(a) != random.bits(b) ? random.bits(a) < random.bits(b) : a < b;
    });
    chosen.resize(selection.sessions);
    std::sort(chosen.begin(), chosen.end());
  }
  return chosen;
}

}  // namespace net
