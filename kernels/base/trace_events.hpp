// A trace of what the process did, for chrome://tracing and Perfetto: spans and instants of all
// threads. Off by default: a span then costs one relaxed load.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace kernels {

struct TraceArg {
  const char* name = nullptr;  // a string literal
  uint64_t value = 0;
};

// Invariant: each thread keeps its newest kTraceEvents events; the oldest are overwritten. All
// functions are thread-safe.
class TraceEvents {
 public:
  static constexpr size_t kTraceEvents = size_t{1} << 16;  // of a thread; 128 B each, 8 MiB

  static void start();  // from now on events are kept; forgets earlier ones
  static void stop();
  static bool on() { return on_.load(std::memory_order_relaxed); }
  // The events so far as JSON (Trace Event Format), threads by their names, times in microseconds.
  static std::string json();
  // json() into a file; throws std::runtime_error naming it if that fails.
  static void write(const std::string& path);

  // Something at one time.
  static void instant(const char* name, std::initializer_list<TraceArg> args);

 private:
  friend class TraceSpan;
  struct Event;
  struct Ring;
  struct Registry;
  static Ring& ring();
  static Registry& registry();
  static void record(const Event& event);
  static inline std::atomic<bool> on_{false};
};

// What happens until the end of its scope. Spans of a thread nest.
class TraceSpan {
 public:
  static constexpr size_t kArgs = 4;

  explicit TraceSpan(const char* name, std::initializer_list<TraceArg> args = {}) {
    if (TraceEvents::on()) begin(name, args);
  }
  ~TraceSpan() {
    if (name_ != nullptr) end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void begin(const char* name, std::initializer_list<TraceArg> args);
  void end();

  const char* name_ = nullptr;  // a string literal; null: not recorded
  uint64_t begin_ns_ = 0;
  std::array<TraceArg, kArgs> args_;
};

}  // namespace kernels
