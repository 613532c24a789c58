#include "actors/scheduler_feed.hpp"

#include <utility>

#include "actors/sequence_ids.hpp"
#include "memory/move_checker.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

void trace_rows(const std::vector<runtime::RowResult>& rows, const char* hop) {
  if (!runtime::Trace::global().enabled()) return;
  for (const auto& row : rows) runtime::trace_hop(request_of(row.sequence), hop);
}

}  // namespace

SchedulerFeed::SchedulerFeed(const runtime::SchedulerConfig& config, FeedContext context)
    : core_(config), context_(std::move(context)) {
  if (context_.check_moves) memory::guard(core_.moves(), context_.geometry);
  if (const auto file = context_.move_log)
    core_.moves().listen([file](const memory::MoveRecord& record) { file->write(record); });
}

SchedulerOutbox SchedulerFeed::enqueue(runtime::Submit submit, uint64_t arrival_ns) {
  runtime::trace_hop(submit.request, "scheduler.enqueue");
  const runtime::RequestId request = submit.request;
  arrivals_ns_[request.value] = arrival_ns;
  absorb_event(std::move(submit));
  // The board may have told of it before the scheduler knew the request.
  if (const auto why = context_.desk->cancelled(request))
    absorb_event(runtime::Abort{request, why->code});
  return conclude();
}

SchedulerOutbox SchedulerFeed::orders(std::vector<runtime::SchedulerEvent> events) {
  for (auto& event : events) absorb_event(std::move(event));
  return conclude();
}

SchedulerOutbox SchedulerFeed::answers(memory::CacheReply reply) {
  absorb_event(std::move(reply));
  return conclude();
}

SchedulerOutbox SchedulerFeed::absorb(runtime::StepResult result) {
  trace_rows(result.rows, "scheduler.absorb");
  context_.telemetry->step(result.start_ns, result.end_ns, had_work_);
  absorb_event(std::move(result));
  SchedulerOutbox outbox = conclude();
  had_work_ = has_work();
  return outbox;
}

SchedulerOutbox SchedulerFeed::tick() { return conclude(); }

memory::MovePage SchedulerFeed::moves(const memory::MoveQuery& query) const {
  memory::MovePage page = core_.moves().page(query);
  page.geometry = context_.geometry;
  return page;
}

void SchedulerFeed::absorb_event(runtime::SchedulerEvent event) {
  if (context_.event_log) context_.event_log->absorb(event);
  core_.absorb(std::move(event), outputs_);
}

// The board is read last: no plan that is built from here on names what it holds.
SchedulerOutbox SchedulerFeed::conclude() {
  for (const runtime::Abort& abort : context_.cancellations->take()) absorb_event(abort);
  const uint64_t now_us = context_.clock() / 1000;
  if (context_.event_log) context_.event_log->before_plan();
  core_.plan(now_us, outputs_);
  if (context_.event_log) context_.event_log->plan(now_us, outputs_);
  return sort();
}

bool SchedulerFeed::has_work() const {
  const runtime::SchedulerStats stats = core_.stats();
  return stats.running + stats.queued > 0;
}

SchedulerOutbox SchedulerFeed::sort() {
  SchedulerOutbox outbox;
  batch_of_.clear();
  for (auto& output : outputs_) {
    if (auto* step = std::get_if<runtime::StepPlan>(&output)) plan(*step, outbox);
    if (auto* request = std::get_if<memory::CacheRequest>(&output))
      outbox.cache.push_back(std::move(*request));
    if (auto* event = std::get_if<runtime::SessionEvent>(&output)) tell(*event, outbox);
  }
  if (!outputs_.empty()) context_.telemetry->publish(core_.stats());
  outputs_.clear();
  if (context_.move_log && core_.idle()) context_.move_log->flush();
  had_work_ = had_work_ && has_work();
  return outbox;
}

void SchedulerFeed::plan(runtime::StepPlan& step, SchedulerOutbox& outbox) {
  step.rank_group = context_.rank_group;
  for (const auto& command : step.commands) {
    const auto* forward = std::get_if<runtime::Forward>(&command);
    if (forward == nullptr) continue;
    for (const runtime::PlanRow& row : forward->rows) {
      if (!row.start) continue;
      const runtime::RequestId request = request_of(row.sequence);
      runtime::trace_hop(request, "scheduler.plan");
      const auto found = arrivals_ns_.find(request.value);
      if (found == arrivals_ns_.end()) continue;
      context_.telemetry->scheduled(seconds_between(found->second, context_.clock()));
      arrivals_ns_.erase(found);
    }
  }
  outbox.plans.push_back(std::move(step));
}

void SchedulerFeed::tell(runtime::SessionEvent& event, SchedulerOutbox& outbox) {
  const runtime::RequestId request =
      std::visit([](const auto& value) { return value.request; }, event);
  const auto [place, is_new] = batch_of_.try_emplace(request.value, outbox.sessions.size());
  if (is_new) outbox.sessions.push_back({request, {}, false});
  SessionBatch& batch = outbox.sessions[place->second];
  if (const auto* finished = std::get_if<runtime::SequenceFinished>(&event)) {
    batch.last = finished->last;
    if (batch.last) arrivals_ns_.erase(request.value);
  }
  batch.events.push_back(std::move(event));
}

}  // namespace actors
