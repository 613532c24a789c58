#include "actors/scheduler_feed.hpp"

#include <utility>

#include "actors/sequence_ids.hpp"
#include "kernels/base/verify.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

void trace_rows(const std::vector<runtime::RowResult>& rows, const char* hop) {
  if (!runtime::Trace::global().enabled()) return;
  for (const auto& row : rows) runtime::trace_hop(request_of(row.sequence), hop);
}

}  // namespace

SchedulerFeed::SchedulerFeed(const runtime::SchedulerConfig& config, FeedContext context)
    : core_(config), context_(std::move(context)) {}

SchedulerOutbox SchedulerFeed::submit(runtime::Submit submit, uint64_t arrival_ns) {
  runtime::trace_hop(submit.request, "scheduler.enqueue");
  const runtime::RequestId request = submit.request;
  open_[request.value] = {submit.sequences.size(), arrival_ns};
  feed(std::move(submit));
  // No plan names it yet: it holds nothing before the cache manager's answer.
  if (context_.desk->cancelled(request))
    feed(runtime::Abort{request, kernels::ErrorCode::kCancelled});
  return sort();
}

SchedulerOutbox SchedulerFeed::orders(std::vector<runtime::SchedulerEvent> events) {
  for (auto& event : events) feed(std::move(event));
  return sort();
}

SchedulerOutbox SchedulerFeed::answers(std::vector<memory::CacheAnswer> answers) {
  for (auto& answer : answers) feed(std::move(answer));
  return sort();
}

SchedulerOutbox SchedulerFeed::result(runtime::StepResult result) {
  trace_rows(result.rows, "scheduler.absorb");
  context_.telemetry->step(result.start_ns, result.end_ns, worked_);
  feed(std::move(result));
  worked_ = core_.stats().running > 0;
  return sort();
}

SchedulerOutbox SchedulerFeed::tick() {
  feed(runtime::Tick{});
  return sort();
}

// Cancellations come first: what is posted is in no plan that this event leads to.
void SchedulerFeed::feed(runtime::SchedulerEvent event) {
  const uint64_t now_us = context_.clock() / 1000;
  for (const runtime::Abort& abort : context_.cancellations->take())
    core_.handle(abort, now_us, outputs_);
  core_.handle(std::move(event), now_us, outputs_);
}

SchedulerOutbox SchedulerFeed::sort() {
  SchedulerOutbox outbox;
  batch_of_.clear();
  for (auto& output : outputs_) {
    if (auto* plan = std::get_if<runtime::StepPlan>(&output)) sort_plan(*plan, outbox);
    if (auto* request = std::get_if<memory::CacheRequest>(&output))
      outbox.cache.push_back(*request);
    if (auto* event = std::get_if<runtime::SessionEvent>(&output)) sort_event(*event, outbox);
  }
  if (!outputs_.empty()) context_.telemetry->publish(core_.stats());
  outputs_.clear();
  return outbox;
}

void SchedulerFeed::sort_plan(runtime::StepPlan& plan, SchedulerOutbox& outbox) {
  plan.rank_group = context_.rank_group;
  for (const auto& command : plan.commands) {
    const auto* forward = std::get_if<runtime::Forward>(&command);
    if (forward == nullptr) continue;
    for (const runtime::PlanRow& row : forward->rows) {
      if (!row.start) continue;
      const runtime::RequestId request = request_of(row.sequence);
      runtime::trace_hop(request, "scheduler.plan");
      const auto found = open_.find(request.value);
      if (found == open_.end() || found->second.arrival_ns == 0) continue;
      const uint64_t arrival_ns = std::exchange(found->second.arrival_ns, 0);
      context_.telemetry->scheduled(seconds_between(arrival_ns, context_.clock()));
    }
  }
  outbox.plans.push_back(std::move(plan));
}

void SchedulerFeed::sort_event(runtime::SessionEvent& event, SchedulerOutbox& outbox) {
  const runtime::RequestId request =
      std::visit([](const auto& value) { return value.request; }, event);
  const auto [place, is_new] = batch_of_.try_emplace(request.value, outbox.sessions.size());
  if (is_new) outbox.sessions.push_back({request, {}, false});
  SessionBatch& batch = outbox.sessions[place->second];
  if (std::holds_alternative<runtime::SequenceFinished>(event)) {
    const auto found = open_.find(request.value);
    VERIFY(found != open_.end());
    batch.last = --found->second.unfinished == 0;
    if (batch.last) open_.erase(found);
  }
  batch.events.push_back(std::move(event));
}

}  // namespace actors
