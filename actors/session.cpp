#include "actors/session.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"

namespace actors {
namespace {

using Self = SessionActor::stateful_pointer<SessionState>;

void begin(Self self, const SessionContext& context, Arrival arrival) {
  self->state.request = arrival.id;
  self->state.arrival_ns = arrival.arrival_ns;
  self->state.core.emplace(arrival.id, arrival.arrival_ns, std::move(arrival.sink), context);
  self->send(self->state.wiring.text_worker,
             Boxed(EncodeJob{arrival.id, std::move(arrival.request)}));
}

void submit(Self self, std::optional<runtime::Submit> submit) {
  if (!submit) return;
  SubmitOrder order{std::move(*submit), self->state.arrival_ns, SessionActor{self}};
  self->send(self->state.wiring.scheduler, Boxed(std::move(order)));
}

void order(Self self, std::vector<runtime::SchedulerEvent> events) {
  if (!events.empty())
    self->send(self->state.wiring.scheduler, Boxed(SessionOrders{std::move(events)}));
}

void lose(Self self, const kernels::Error& error) {
  if (self->state.core) self->state.core->on_loss(error);
}

void leave_if_finished(Self self) {
  if (self->state.core->finished()) self->quit();
}

}  // namespace

SessionActor::behavior_type session(Self self, GatewayWiring wiring,
                                    const SessionContext* context) {
  self->state.wiring = std::move(wiring);
  // However the session ends, the sink gets its end first.
  self->set_exception_handler([self](std::exception_ptr& pointer) {
    lose(self, {kernels::ErrorCode::kInternal, "the request failed: " + what(pointer), {}});
    return failure(what(pointer));
  });
  self->set_exit_handler([self](caf::exit_msg& exit) {
    lose(self, {kernels::ErrorCode::kUnavailable, "the server is shutting down", {}});
    self->quit(std::move(exit.reason));
  });
  return {
      [=](Boxed<Arrival>& arrival) { begin(self, *context, arrival.take()); },
      [=](Boxed<EncodeOutcome>& outcome) {
        submit(self, self->state.core->on_encoded(outcome.take()));
        leave_if_finished(self);
      },
      [=](Boxed<SessionBatch>& batch) {
        order(self, self->state.core->on_events(batch.take().events));
        leave_if_finished(self);
      },
      [=](Boxed<EndRequest>& end) {
        order(self, self->state.core->on_abort(end.take().error));
        leave_if_finished(self);
      },
      [=](Boxed<EngineLost>& lost) {
        lose(self, lost.take().error);
        leave_if_finished(self);
      },
  };
}

}  // namespace actors
