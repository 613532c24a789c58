#include "runtime/trace.hpp"

#include <algorithm>
#include <mutex>

#include "kernels/base/steady_clock.hpp"

namespace runtime {

struct Trace::Ring {
  mutable std::mutex mutex;
  std::vector<Hop> hops;  // [capacity]; valid below min(written, capacity)
  size_t written = 0;
  Clock clock = kernels::steady_now_ns;
};

Trace::Trace() : ring_(std::make_unique<Ring>()) {}

Trace& Trace::global() {
  static Trace trace;
  return trace;
}

void Trace::enable(size_t capacity, Clock clock) {
  const std::lock_guard lock(ring_->mutex);
  ring_->hops.assign(std::max<size_t>(capacity, 1), Hop{});
  ring_->written = 0;
  ring_->clock = clock ? std::move(clock) : Clock(kernels::steady_now_ns);
  enabled_ = true;
}

void Trace::disable() { enabled_ = false; }

uint64_t Trace::now_ns() const {
  if (!enabled()) return 0;
  const std::lock_guard lock(ring_->mutex);
  return ring_->clock();
}

void Trace::record(RequestId request, const char* name) { record_at(request, name, now_ns()); }

void Trace::record_at(RequestId request, const char* name, uint64_t time_ns) {
  if (!enabled()) return;
  const std::lock_guard lock(ring_->mutex);
  ring_->hops[ring_->written % ring_->hops.size()] = {request, name, time_ns};
  ++ring_->written;
}

std::vector<Hop> Trace::records(RequestId request) const {
  std::vector<Hop> found;
  const std::lock_guard lock(ring_->mutex);
  const size_t capacity = ring_->hops.size();
  const size_t kept = std::min(ring_->written, capacity);
  for (size_t i = ring_->written - kept; i < ring_->written; ++i) {
    const Hop& hop = ring_->hops[i % capacity];
    if (hop.request == request) found.push_back(hop);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Hop& a, const Hop& b) { return a.time_ns < b.time_ns; });
  return found;
}

std::vector<std::string> Trace::hops(RequestId request) const {
  std::vector<std::string> names;
  for (const Hop& hop : records(request)) {
    if (std::find(names.begin(), names.end(), hop.name) == names.end())
      names.emplace_back(hop.name);
  }
  return names;
}

}  // namespace runtime
