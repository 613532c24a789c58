// Plays a trace against a running server over HTTP. Each request has a client of its own, which
// sends when the pacer says so by the real clock; all of them live on the calling thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <vector>

#include "net/replay/client_faults.hpp"
#include "net/replay/live_requests.hpp"
#include "net/replay/replay_metrics.hpp"
#include "net/replay/session_pacer.hpp"

namespace net {

struct HttpTarget;
struct LivePlay;

class LiveReplay {
 public:
  struct Config {
    Pace pace;
    ClientFaults faults;
    ReplaySlo slo;
    uint32_t retries = 20;   // of a request
    bool is_sluice = false;  // the server's counters are read too
  };
  // Told of every request that ended.
  using Listener = std::function<void(const LivePlay&)>;

  // `target`, `trace`, `prompts` and `requests` must outlive it. `progress`: where a bar is drawn;
  // nullptr: nowhere.
  LiveReplay(const Config& config, const HttpTarget& target, const Trace& trace,
             const std::vector<uint32_t>& sessions, const PromptSource& prompts,
             const LiveRequests& requests, std::ostream* progress, Listener listener = nullptr);
  ~LiveReplay();

  void run();  // until every request has ended, or an interrupt (SIGINT); once
  // The metrics' summary, what the clients met, and what a Sluice server counted.
  boost::json::object result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace net
