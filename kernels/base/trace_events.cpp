#include "kernels/base/trace_events.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/base/steady_clock.hpp"

namespace kernels {
namespace {

constexpr uint64_t kInstant = ~uint64_t{0};  // in place of a duration

using Args = std::array<TraceArg, TraceSpan::kArgs>;

Args first_of(std::initializer_list<TraceArg> args) {
  Args kept;
  std::copy_n(args.begin(), std::min(args.size(), kept.size()), kept.begin());
  return kept;
}

// Names are literals of this program, or of threads, which may hold anything.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    const bool plain = letter >= 0x20 && letter < 0x7f && letter != '"' && letter != '\\';
    out += plain ? letter : '?';
  }
  return out + '"';
}

std::string microseconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03llu", static_cast<unsigned long long>(ns / 1000),
                static_cast<unsigned long long>(ns % 1000));
  return text;
}

std::string thread_name() {
  char name[64] = {};
  return ::pthread_getname_np(::pthread_self(), name, sizeof name) == 0 ? name : "thread";
}

}  // namespace

struct TraceEvents::Event {
  const char* name = nullptr;
  uint64_t begin_ns = 0, duration_ns = 0;  // duration kInstant: no duration
  Args args;
};

// Events of one thread. The lock is contended only while a trace is written.
struct TraceEvents::Ring {
  std::mutex mutex;
  std::vector<Event> events;  // at most kTraceEvents
  size_t written = 0;
  size_t thread = 0;  // its number, from 1
  std::string thread_name;
};

// Rings outlive their threads: their events may still be written.
struct TraceEvents::Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Ring>> rings;
};

TraceEvents::Registry& TraceEvents::registry() {
  static Registry registry;
  return registry;
}

TraceEvents::Ring& TraceEvents::ring() {
  thread_local std::shared_ptr<Ring> mine;
  if (mine == nullptr) {
    mine = std::make_shared<Ring>();
    mine->thread_name = thread_name();
    const std::lock_guard lock(registry().mutex);
    registry().rings.push_back(mine);
    mine->thread = registry().rings.size();
  }
  return *mine;
}

void TraceEvents::start() {
  const std::lock_guard lock(registry().mutex);
  for (const auto& ring : registry().rings) {
    const std::lock_guard ring_lock(ring->mutex);
    ring->events.clear();
    ring->written = 0;
  }
  on_ = true;
}

void TraceEvents::stop() { on_ = false; }

void TraceEvents::record(const Event& event) {
  Ring& own = ring();
  const std::lock_guard lock(own.mutex);
  if (own.events.size() < kTraceEvents) {
    own.events.push_back(event);
  } else {
    own.events[own.written % kTraceEvents] = event;
  }
  ++own.written;
}

void TraceEvents::instant(const char* name, std::initializer_list<TraceArg> args) {
  if (on()) record({name, steady_now_ns(), kInstant, first_of(args)});
}

std::string TraceEvents::json() {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  const char* separator = "\n";
  const std::lock_guard lock(registry().mutex);
  for (const auto& ring : registry().rings) {
    const std::lock_guard ring_lock(ring->mutex);
    const std::string thread = "\"pid\": 1, \"tid\": " + std::to_string(ring->thread);
    out += separator + ("{\"name\": \"thread_name\", \"ph\": \"M\", " + thread) +
           ", \"args\": {\"name\": " + quoted(ring->thread_name) + "}}";
    separator = ",\n";
    for (const Event& event : ring->events) {
      out += separator + ("{\"name\": " + quoted(event.name)) + ", " + thread +
             ", \"ts\": " + microseconds(event.begin_ns);
      out += event.duration_ns == kInstant
                 ? ", \"ph\": \"i\", \"s\": \"t\""
                 : ", \"ph\": \"X\", \"dur\": " + microseconds(event.duration_ns);
      out += ", \"args\": {";
      const char* comma = "";
      for (const TraceArg& arg : event.args) {
        if (arg.name == nullptr) break;
        out += comma + quoted(arg.name) + ": " + std::to_string(arg.value);
        comma = ", ";
      }
      out += "}}";
    }
  }
  return out + "\n]}\n";
}

void TraceEvents::write(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << json();
  file.close();
  if (!file) throw std::runtime_error("cannot write the profile to " + path);
}

void TraceSpan::begin(const char* name, std::initializer_list<TraceArg> args) {
  name_ = name;
  args_ = first_of(args);
  begin_ns_ = steady_now_ns();
}

void TraceSpan::end() {
  const uint64_t duration_ns = steady_now_ns() - begin_ns_;
  TraceEvents::record({name_, begin_ns_, duration_ns, args_});
}

}  // namespace kernels
