// Where the server is in its life, in the words that /health and refused requests use.
#pragma once

#include <string>

#include "kernels/base/result.hpp"
#include "net/server_context.hpp"

namespace net {

struct ServerState {
  std::string word;    // "ready", "starting", "draining" or "failed"
  std::string detail;  // for people; empty when ready
  bool ready() const { return word == "ready"; }
};

ServerState state_of(const ServerContext& context);

// kUnavailable, with the state as its message.
kernels::Error unavailable(const ServerState& state);

}  // namespace net
