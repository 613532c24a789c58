#include "actors/scheduler.hpp"

#include <algorithm>
#include <caf/all.hpp>
#include <chrono>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"
#include "kernels/base/verify.hpp"

namespace actors {
namespace {

using Self = SchedulerActor::stateful_pointer<SchedulerState>;

// A timer cannot be taken back, so none is set for longer: a far deadline gets several.
constexpr uint64_t kTimerMaxUs = 60'000'000;

// Sets a timer only if none under way comes in time for the next deadline.
void arm_timer(Self self) {
  const auto deadline_us = self->state.feed->next_deadline_us();
  if (!deadline_us) return;
  const uint64_t now_us = self->state.clock() / 1000;
  const uint64_t target_us = std::clamp(*deadline_us, now_us, now_us + kTimerMaxUs);
  auto& timers_us = self->state.timers_us;
  if (!timers_us.empty() && *timers_us.begin() <= target_us) return;
  timers_us.insert(target_us);
  self->delayed_send(self, std::chrono::microseconds(target_us - now_us + 1), tick_atom_v,
                     target_us);
}

void send_batch(Self self, SessionBatch batch) {
  const auto found = self->state.sessions.find(batch.request.value);
  if (found == self->state.sessions.end()) return;
  const bool last = batch.last;
  self->send(found->second, Boxed(std::move(batch)));
  if (last) self->state.sessions.erase(found);
}

void post(Self self, SchedulerOutbox outbox) {
  for (auto& plan : outbox.plans) self->send(self->state.worker, Boxed(std::move(plan)));
  if (!outbox.cache.empty()) {
    self->send(self->state.cache_manager,
               Boxed(CacheRequests{self->state.rank_group, std::move(outbox.cache)}));
  }
  for (auto& batch : outbox.sessions) send_batch(self, std::move(batch));
  arm_timer(self);
}

void enqueue(Self self, SubmitOrder order) {
  self->state.sessions.emplace(order.submit.request.value, std::move(order.session));
  post(self, self->state.feed->enqueue(std::move(order.submit), order.arrival_ns));
}

// A failed step has no result: the supervisor, who monitors the worker, ends everything.
void absorb(Self self, StepOutcome outcome) {
  VERIFY(outcome.rank_group == self->state.rank_group);
  if (outcome.result) post(self, self->state.feed->absorb(std::move(*outcome.result)));
}

void tick(Self self, uint64_t target_us) {
  if (self->state.timers_us.erase(target_us) == 0) return;
  post(self, self->state.feed->tick());
}

void take_answers(Self self, memory::CacheReply reply) {
  if (reply.empty()) return;
  post(self, self->state.feed->answers(std::move(reply)));
}

// In order with what the scheduler asks: what the flush moves comes back like any other answer.
void flush(Self self) {
  self->send(self->state.cache_manager,
             Boxed(CacheRequests{self->state.rank_group, {}, true}));
}

// Moves are answered here; everything else in order with what the scheduler asks, as a flush is.
void inspect(Self self, InspectCall call) {
  if (const auto* query = std::get_if<memory::MoveQuery>(&call.question())) {
    call.answer(self->state.feed->moves(*query));
    return;
  }
  self->send(self->state.cache_manager,
             Boxed(CacheRequests{self->state.rank_group, {}, false, 0, std::move(call)}));
}

void spill(Self self, uint64_t deadline_ns) {
  self->send(self->state.cache_manager,
             Boxed(CacheRequests{self->state.rank_group, {}, false, deadline_ns}));
}

}  // namespace

SchedulerActor::behavior_type scheduler(Self self, SchedulerStart start) {
  name_exceptions(self);
  self->state.rank_group = start.context.rank_group;
  self->state.clock = start.context.clock;
  self->state.worker = std::move(start.worker);
  self->state.cache_manager = std::move(start.cache_manager);
  self->state.feed.emplace(start.config, std::move(start.context));
  return {
      traced("scheduler.submit", [=](Boxed<SubmitOrder>& order) { enqueue(self, order.take()); }),
      traced("scheduler.orders",
             [=](Boxed<SessionOrders>& orders) {
               post(self, self->state.feed->orders(orders.take().events));
             }),
      traced("scheduler.cache_answers",
             [=](Boxed<CacheAnswers>& answers) { take_answers(self, answers.take().reply); }),
      traced("scheduler.step_outcome",
             [=](Boxed<StepOutcome>& outcome) { absorb(self, outcome.take()); }),
      traced("scheduler.tick", [=](tick_atom, uint64_t target_us) { tick(self, target_us); }),
      traced("scheduler.inspect",
             [=](Boxed<InspectCall>& call) { inspect(self, call.take()); }),
      traced("scheduler.flush", [=](flush_atom) { flush(self); }),
      traced("scheduler.spill", [=](spill_atom, uint64_t by_ns) { spill(self, by_ns); }),
  };
}

}  // namespace actors
