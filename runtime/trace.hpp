// Which functions a request went through, for the test that keeps the documented path honest and
// for a look at one slow request. Off by default: a hop then costs one relaxed load. When on, a
// fixed ring keeps the newest hops.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/trace_events.hpp"
#include "runtime/request.hpp"

namespace runtime {

// The path of a request: each hop is named after the actor and the function of it (or of the class
// it is made of) that was reached. Those of net/ are reached on a connection: the first two before
// the request has an id, net.read_request when its body and net.parse when its GenerateRequest was
// complete; net.push when its newest output came.
inline constexpr std::array<const char*, 12> kRequestHops = {
    "net.read_request",   "net.parse",        "gateway.submit",    "session.begin",
    "text_worker.encode", "session.submit",   "scheduler.enqueue", "scheduler.plan",
    "worker.run",         "scheduler.absorb", "session.token",     "net.push"};

struct Hop {
  RequestId request;
  const char* name = "";  // a string literal
  uint64_t time_ns = 0;
};

// Invariant: holds at most the capacity given to enable(); the oldest hop is overwritten first.
// Thread-safe.
class Trace {
 public:
  using Clock = std::function<uint64_t()>;  // nanoseconds
  static Trace& global();

  void enable(size_t capacity,
              Clock clock = {});  // no clock: the steady clock. Forgets earlier hops.
  void disable();
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  uint64_t now_ns() const;  // 0 when disabled
  void record(RequestId request, const char* name);
  // For hops that happened before the request had an id.
  void record_at(RequestId request, const char* name, uint64_t time_ns);

  std::vector<Hop> records(RequestId request) const;  // by time, then by order of arrival
  std::vector<std::string> hops(
      RequestId request) const;  // each name once, in order of first visit

 private:
  Trace();
  struct Ring;
  std::unique_ptr<Ring> ring_;
  std::atomic<bool> enabled_{false};
};

// Also an instant of the process's trace, where that is on.
inline void trace_hop(RequestId request, const char* name) {
  if (kernels::TraceEvents::on()) kernels::TraceEvents::instant(name, {{"request", request.value}});
  if (Trace::global().enabled()) Trace::global().record(request, name);
}

}  // namespace runtime
