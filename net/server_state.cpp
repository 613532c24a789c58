#include "net/server_state.hpp"

#include "runtime/endings.hpp"

namespace net {

ServerState state_of(const ServerContext& context) {
  using Kind = actors::ServicePhase::Kind;
  const actors::ServicePhase phase = context.service.phase();
  if (phase.kind == Kind::kFailed) return {"failed", phase.reason};
  if (context.draining || phase.kind == Kind::kDraining) {
    return {"draining", runtime::shutting_down().message};
  }
  if (phase.kind == Kind::kStarting) return {"starting", "the model is being loaded"};
  return {"ready", {}};
}

kernels::Error unavailable(const ServerState& state) {
  return {kernels::ErrorCode::kUnavailable, state.word + ": " + state.detail, {}};
}

}  // namespace net
