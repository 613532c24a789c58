// What is wrong with some clients of a replay, the same on a modelled server and on a live one.
#pragma once

#include <cstdint>

#include "net/replay/session_pacer.hpp"

namespace net {

struct ClientFaults {
  double leave_share = 0;  // of the requests whose client leaves, after a random part of the answer
  double deadline_s = 0;   // 0: none
  uint64_t seed = 1;
};

// After how many tokens of its answer the client of this request leaves; 0: it stays. Depends on
// the faults and the play alone.
uint32_t leaves_after(const ClientFaults& faults, const Play& play, uint32_t output_tokens);

}  // namespace net
