// The scheduler's part of an event log: every event, and for every plan() the time it was told and
// a digest of what came out, enough to run the core again without a model, clients or threads and
// to see whether it decides the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "memory/event_log.hpp"
#include "runtime/scheduler.hpp"

namespace runtime {

class SchedulerLog {
 public:
  SchedulerLog(const std::string& path, const SchedulerConfig& config);
  // As the calls of Scheduler. `outputs`: everything since the last plan().
  void absorb(const SchedulerEvent& event);
  void before_plan();  // plan() may be the last call
  void plan(uint64_t now_us, std::span<const SchedulerOutput> outputs);

 private:
  memory::EventLogWriter out_;
};

// Feeds the log to a fresh Scheduler. Throws std::runtime_error naming the file if it is not such a
// log.
memory::EventLogCheck check_scheduler_log(const std::string& path);

}  // namespace runtime
