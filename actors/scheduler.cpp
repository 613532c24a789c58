#include "actors/scheduler.hpp"

#include <algorithm>
#include <caf/all.hpp>
#include <chrono>
#include <utility>

#include "actors/spawning.hpp"
#include "kernels/base/verify.hpp"

namespace actors {
namespace {

using Self = SchedulerActor::stateful_pointer<SchedulerState>;

// A timer runs only while some request has a deadline; an earlier one gets its own tick, a late
// tick does no harm.
void arm_timer(Self self) {
  const auto deadline_us = self->state.feed->next_deadline_us();
  if (!deadline_us || (self->state.timer_us && *self->state.timer_us <= *deadline_us)) return;
  const uint64_t now_us = self->state.clock() / 1000;
  const uint64_t wait_us = *deadline_us > now_us ? *deadline_us - now_us : 0;
  self->state.timer_us = *deadline_us;
  self->delayed_send(self, std::chrono::microseconds(wait_us + 1), tick_atom_v);
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

void submit(Self self, SubmitOrder order) {
  self->state.sessions.emplace(order.submit.request.value, std::move(order.session));
  post(self, self->state.feed->submit(std::move(order.submit), order.arrival_ns));
}

// A failed step has no result: the supervisor, who monitors the worker, ends everything.
void absorb(Self self, StepOutcome outcome) {
  VERIFY(outcome.rank_group == self->state.rank_group);
  if (outcome.result) post(self, self->state.feed->result(std::move(*outcome.result)));
}

void tick(Self self) {
  self->state.timer_us.reset();
  post(self, self->state.feed->tick());
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
      [=](Boxed<SubmitOrder>& order) { submit(self, order.take()); },
      [=](Boxed<SessionOrders>& orders) {
        post(self, self->state.feed->orders(orders.take().events));
      },
      [=](Boxed<CacheAnswers>& answers) {
        post(self, self->state.feed->answers(answers.take().answers));
      },
      [=](Boxed<StepOutcome>& outcome) { absorb(self, outcome.take()); },
      [=](tick_atom) { tick(self); },
  };
}

}  // namespace actors
