// Plays a trace on a server with a virtual clock. The clients are modelled too: they send when the
// pacer says so, hear tokens when their step is over, and some leave early.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "net/replay/client_faults.hpp"
#include "net/replay/prompt_source.hpp"
#include "net/replay/replay_metrics.hpp"
#include "net/replay/replay_timeline.hpp"
#include "net/replay/session_pacer.hpp"
#include "net/replay/typical_steps.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace net {

class ModelledReplay final : private runtime::VirtualServerSink {
 public:
  struct Config {
    runtime::VirtualServerConfig server;
    Pace pace;
    ClientFaults faults;
    ReplaySlo slo;
    bool skip = true;  // runs of decode steps that decide nothing in one call; same result
  };
  // Told of every request that ended, in order of time.
  using Listener = std::function<void(const PlayRecord&)>;

  // `trace`, `prompts` and `clock` must outlive it.
  ModelledReplay(const Config& config, const Trace& trace, const std::vector<uint32_t>& sessions,
                 const PromptSource& prompts, runtime::DeviceClock& clock,
                 Listener listener = nullptr);

  void run();  // to the end; once
  // The metrics' summary and what the server counted.
  boost::json::object result() const;
  const runtime::VirtualServer& server() const { return server_; }
  const ReplayMetrics& metrics() const { return metrics_; }
  const ReplayTimeline& timeline() const { return timeline_; }
  const TypicalSteps& typical_steps() const { return typical_steps_; }

 private:
  struct Open {  // a request under way
    PlayRecord record;
    uint32_t leaves_after = 0;  // tokens; 0: its client stays
    bool has_hit = false;
  };
  void on_event(uint64_t now_ns, const runtime::SessionEvent& event) override;
  void on_hit(uint64_t now_ns, const runtime::CacheHit& hit) override;
  void on_step(uint64_t begin_ns, uint64_t end_ns, const runtime::StepShape& shape) override;
  void on_skipped(const runtime::SkippedSteps& skipped) override;
  void advance(uint64_t to_ns);
  uint32_t steps_to_next_leave() const;
  void count_peaks(uint64_t rows);
  ReplayGauges gauges() const;
  void send(const SessionPacer::Due& due);
  void heard(uint64_t now_ns, const runtime::SequenceToken& token);
  void finished(uint64_t now_ns, const runtime::SequenceFinished& finished);
  runtime::TokenId answer(runtime::SequenceId sequence, uint32_t index) const;

  Config config_;
  const PromptSource& prompts_;
  SessionPacer pacer_;
  ReplayMetrics metrics_;
  ReplayTimeline timeline_;
  TypicalSteps typical_steps_;
  Listener listener_;
  runtime::VirtualServer server_;
  std::unordered_map<uint64_t, Open> open_;  // by request id
  uint64_t last_id_ = 0;
  uint64_t end_ns_ = 0;  // of the last request
  uint64_t steps_ = 0, busy_ns_ = 0, peak_rows_ = 0;
  uint32_t peak_states_ = 0, peak_pages_ = 0;
};

}  // namespace net
