// Feeds the scheduler core and sorts what it returns by receiver: plans to the worker, requests to
// the cache manager, one batch per session. All the scheduler actor does besides sending.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/cancel_board.hpp"
#include "actors/clock.hpp"
#include "actors/front_desk.hpp"
#include "actors/telemetry.hpp"
#include "memory/move_log_file.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/scheduler_log.hpp"

namespace actors {

struct SessionBatch {  // everything one event brought for one request, in order
  runtime::RequestId request;
  std::vector<runtime::SessionEvent> events;
  bool last = false;  // every sequence of the request has finished
};

// In sending order: a plan first, so that the worker never waits for the rest.
struct SchedulerOutbox {
  std::vector<runtime::StepPlan> plans;
  std::vector<memory::CacheRequest> cache;
  std::vector<SessionBatch> sessions;
};

struct FeedContext {  // what it points to outlives the feed
  uint32_t rank_group = 0;
  Clock clock;
  Telemetry* telemetry = nullptr;
  CancelBoard* cancellations = nullptr;
  const FrontDesk* desk = nullptr;  // remembers a cancellation that came before the Submit
  memory::MoveGeometry geometry = {};
  std::shared_ptr<memory::MoveLogWriter> move_log = nullptr;  // nullptr: no file
  bool check_moves = false;
  std::shared_ptr<runtime::SchedulerLog> event_log = nullptr;  // nullptr: none
};

// Invariant: arrivals_ns_ holds exactly the requests that were not planned for yet.
class SchedulerFeed {
 public:
  SchedulerFeed(const runtime::SchedulerConfig& config, FeedContext context);

  SchedulerOutbox enqueue(runtime::Submit submit, uint64_t arrival_ns);
  SchedulerOutbox orders(
      std::vector<runtime::SchedulerEvent> events);  // from sessions: abort, stop
  SchedulerOutbox answers(memory::CacheReply reply);
  SchedulerOutbox absorb(runtime::StepResult result);
  SchedulerOutbox tick();

  memory::MovePage moves(const memory::MoveQuery& query) const;
  std::optional<uint64_t> next_deadline_us() const { return core_.next_deadline_us(); }

 private:
  void absorb_event(runtime::SchedulerEvent event);
  SchedulerOutbox conclude();  // plans for what was absorbed
  bool has_work() const;
  SchedulerOutbox sort();
  void plan(runtime::StepPlan& plan, SchedulerOutbox& outbox);
  void tell(runtime::SessionEvent& event, SchedulerOutbox& outbox);

  runtime::Scheduler core_;
  FeedContext context_;
  std::unordered_map<uint64_t, uint64_t> arrivals_ns_;  // by request
  std::unordered_map<uint64_t, size_t> batch_of_;  // request -> index in the outbox being filled
  std::vector<runtime::SchedulerOutput> outputs_;  // reused
  // Since the result of the last step some sequence has been waiting or running at all times.
  bool had_work_ = false;
};

}  // namespace actors
