#include "actors/session.hpp"

#include <algorithm>
#include <caf/all.hpp>
#include <chrono>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"
#include "runtime/endings.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

using Self = SessionActor::stateful_pointer<SessionState>;

// A timer cannot be taken back, so none is set for longer: a far deadline gets several.
constexpr uint64_t kTimerMaxNs = 60'000'000'000;

void submit(Self self, std::optional<runtime::Submit> submit) {
  if (!submit) return;
  runtime::trace_hop(submit->request, "session.submit");
  SubmitOrder order{std::move(*submit), self->state.arrival_ns, SessionActor{self}};
  self->send(self->state.wiring.scheduler, Boxed(std::move(order)));
}

void order(Self self, std::vector<runtime::SchedulerEvent> events) {
  if (!events.empty())
    self->send(self->state.wiring.scheduler, Boxed(SessionOrders{std::move(events)}));
}

// Until the prompt is encoded nobody else watches the deadline.
void watch_deadline(Self self, const SessionContext& context) {
  const uint64_t deadline_ns = self->state.deadline_ns;
  if (deadline_ns == 0 || !self->state.core->encoding()) return;
  const uint64_t now_ns = context.clock();
  if (now_ns >= deadline_ns) {
    order(self, self->state.core->on_abort(late_for_encoding()));
    return;
  }
  const uint64_t wait_ns = std::min(deadline_ns - now_ns, kTimerMaxNs);
  self->delayed_send(self, std::chrono::microseconds(wait_ns / 1000 + 1), tick_atom_v);
}

void begin(Self self, const SessionContext& context, Arrival arrival) {
  runtime::trace_hop(arrival.id, "session.begin");
  SessionState& state = self->state;
  state.request = arrival.id;
  state.arrival_ns = arrival.arrival_ns;
  if (const auto deadline_ms = arrival.request.deadline_ms)
    state.deadline_ns = arrival.arrival_ns + *deadline_ms * 1'000'000;
  state.core.emplace(arrival.id, arrival.arrival_ns, std::move(arrival.sink), context);
  self->send(state.wiring.text_worker,
             Boxed(EncodeJob{arrival.id, std::move(arrival.request), state.deadline_ns}));
  watch_deadline(self, context);
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
    lose(self, runtime::shutting_down());
    self->quit(std::move(exit.reason));
  });
  return {
      traced("session.arrival",
             [=](Boxed<Arrival>& arrival) { begin(self, *context, arrival.take()); }),
      traced("session.encoded",
             [=](Boxed<EncodeOutcome>& outcome) {
               submit(self, self->state.core->on_encoded(outcome.take()));
               leave_if_finished(self);
             }),
      traced("session.batch",
             [=](Boxed<SessionBatch>& batch) {
               order(self, self->state.core->on_events(batch.take().events));
               leave_if_finished(self);
             }),
      traced("session.end",
             [=](Boxed<EndRequest>& end) {
               order(self, self->state.core->on_abort(end.take().error));
               leave_if_finished(self);
             }),
      traced("session.engine_lost",
             [=](Boxed<EngineLost>& lost) {
               lose(self, lost.take().error);
               leave_if_finished(self);
             }),
      traced("session.deadline", [=](tick_atom) { watch_deadline(self, *context); }),
  };
}

}  // namespace actors
