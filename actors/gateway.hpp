// Owns the sessions: spawns one per arrival, finds them for aborts, and gives a request's credit
// back when its session ends.
#pragma once

#include <caf/fwd.hpp>
#include <optional>
#include <unordered_map>

#include "actors/front_desk.hpp"
#include "actors/messages.hpp"

namespace actors {

// Invariant: both maps name the live sessions; the desk's open requests are these and the arrivals
// in the mailbox.
struct GatewayState {
  GatewayState() = default;
  ~GatewayState();  // however the gateway ends, its sessions end and their credits come back
  static inline const char* name = "gateway";
  FrontDesk* desk = nullptr;
  std::optional<GatewayWiring> wiring;
  std::optional<EngineLost> lost;  // arrivals that were under way then end with it
  std::unordered_map<uint64_t, SessionActor> sessions;     // by request
  std::unordered_map<caf::actor_id, uint64_t> request_of;  // by session
};

GatewayActor::behavior_type gateway(GatewayActor::stateful_pointer<GatewayState> self,
                                    FrontDesk* desk, const SessionContext* context);

}  // namespace actors
