#include "actors/gateway.hpp"

#include <caf/all.hpp>
#include <cstdio>
#include <utility>

#include "actors/session.hpp"
#include "actors/spawning.hpp"
#include "actors/traced.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

using Self = GatewayActor::stateful_pointer<GatewayState>;
using kernels::ErrorCode;

// Opens the session that the rest of the request's life belongs to.
void submit(Self self, FrontDesk& desk, const SessionContext* context, Boxed<Arrival> arrival) {
  GatewayState& state = self->state;
  const runtime::RequestId id = arrival.peek().id;
  runtime::trace_hop(id, "gateway.submit");
  const SessionActor handle = self->spawn<caf::monitored>(session, *state.wiring, context);
  state.sessions.emplace(id.value, handle);
  state.request_of.emplace(handle.id(), id.value);
  self->send(handle, std::move(arrival));
  if (state.lost) self->send(handle, Boxed(EngineLost(*state.lost)));
  // An abort may have overtaken the arrival: the desk remembers it.
  if (const auto why = desk.cancelled(id)) self->send(handle, Boxed(EndRequest{id, *why}));
}

void end_session(Self self, EndRequest end) {
  const auto found = self->state.sessions.find(end.id.value);
  if (found != self->state.sessions.end()) self->send(found->second, Boxed(std::move(end)));
}

void lose_engine(Self self, EngineLost lost) {
  for (const auto& [id, handle] : self->state.sessions) self->send(handle, Boxed(EngineLost(lost)));
  self->state.lost = std::move(lost);
}

// The one place where a request's credit is given back.
void session_ended(Self self, FrontDesk& desk, const caf::down_msg& down) {
  GatewayState& state = self->state;
  const auto found = state.request_of.find(down.source.id());
  if (found == state.request_of.end()) return;
  const runtime::RequestId id{found->second};
  if (down.reason != caf::none) {  // it could not say so itself
    std::fprintf(stderr, "session of request %llu ended: %s\n",
                 static_cast<unsigned long long>(id.value), caf::to_string(down.reason).c_str());
    self->send(state.wiring->scheduler,
               Boxed(SessionOrders{{runtime::Abort{id, ErrorCode::kInternal}}}));
  }
  state.sessions.erase(id.value);
  state.request_of.erase(found);
  desk.release(id);
}

}  // namespace

GatewayState::~GatewayState() {
  for (const auto& [id, handle] : sessions) {
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    desk->release({id});
  }
}

GatewayActor::behavior_type gateway(Self self, FrontDesk* desk, const SessionContext* context) {
  name_exceptions(self);
  self->state.desk = desk;
  self->set_down_handler([=](caf::down_msg& down) { session_ended(self, *desk, down); });
  return {
      traced("gateway.arrival",
             [=](Boxed<Arrival>& arrival) { submit(self, *desk, context, std::move(arrival)); }),
      traced("gateway.end", [=](Boxed<EndRequest>& end) { end_session(self, end.take()); }),
      traced("gateway.engine_lost",
             [=](Boxed<EngineLost>& lost) { lose_engine(self, lost.take()); }),
      traced("gateway.wiring",
             [=](Boxed<GatewayWiring>& wiring) { self->state.wiring = wiring.take(); }),
  };
}

}  // namespace actors
