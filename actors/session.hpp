// One request: an actor around SessionCore. It ends itself when the request is over; the gateway,
// which monitors it, then takes the credit back.
#pragma once

#include <optional>

#include "actors/messages.hpp"

namespace actors {

struct SessionState {
  SessionState() = default;
  static inline const char* name = "session";
  runtime::RequestId request;
  uint64_t arrival_ns = 0;
  uint64_t deadline_ns = 0;  // 0 = none
  GatewayWiring wiring;
  std::optional<SessionCore> core;
};

SessionActor::behavior_type session(SessionActor::stateful_pointer<SessionState> self,
                                    GatewayWiring wiring, const SessionContext* context);

}  // namespace actors
