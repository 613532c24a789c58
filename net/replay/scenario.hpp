// A replay as a file that one can share: which traffic, at what pace and scale, with what faults,
// on which server, modelled or live. Everything but the trace itself; on a modelled server equal
// scenarios give equal results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/replay/live_server.hpp"
#include "net/replay/modelled_replay.hpp"
#include "net/replay/session_pacer.hpp"
#include "net/replay/sweep_figures.hpp"
#include "net/trace/trace.hpp"
#include "runtime/sim/speculation.hpp"
#include "runtime/sim/step_options.hpp"

namespace net {

// Which of a trace's sessions are played, and how large.
struct TraceSelection {
  std::vector<std::string> files;  // as written: see locate_traces()
  uint32_t sessions = 0;           // so many, drawn by the seed; 0: all
  uint32_t min_requests = 0;       // sessions with fewer requests are left out
  uint32_t min_context = 0;        // and those whose longest prompt and answer are shorter
  bool sub_agents = true;          // false: the main conversations alone
  uint32_t block_tokens = 0;       // 0: as recorded; less plays everything at a smaller scale
};

// A modelled server. Names of devices and models are files of config/, or paths.
struct ModelledServer {
  std::string device = "gb300", model = "kimi-k3", layout = "TP8";
  runtime::StepOptions step;
  uint32_t max_running = 64, chunk_tokens = 8192, context_length = 1u << 20, page_tokens = 64;
  bool prefix_cache = true;
  std::string eviction = "benefit";
  double state_share = 0;  // of a split arena; 0: unified
  double kv_tokens = 0;    // the arena holds so many tokens of KV beside its states; 0: all it can
  double host_gb = 0;      // host memory of a rank, GB
  runtime::SpeculationConfig speculation;
};

struct Scenario {
  std::string name, path;
  uint64_t seed = 1;
  TraceSelection trace;
  Pace pace;
  ClientFaults faults;
  ReplaySlo slo;
  ModelledServer server;
  bool has_server = true;  // false: it has a live one alone
  LiveServer live;
  // A sweep's, when it is given none; and what its points are held to.
  std::vector<std::string> grid;
  std::vector<SweepFigure> figures;
};

// Throws std::runtime_error naming file and key, what is wrong and what would be right.
Scenario parse_scenario(std::string_view toml, const std::string& path);

// Makes paths of traces relative to `directory`, or where that is empty to the scenario's own
// folder.
void locate_traces(Scenario& scenario, const std::string& directory);

// The sessions of `trace` that the scenario plays, ascending. Throws std::invalid_argument when
// there is none.
std::vector<uint32_t> select_sessions(const Trace& trace, const TraceSelection& selection,
                                      uint64_t seed);

}  // namespace net
