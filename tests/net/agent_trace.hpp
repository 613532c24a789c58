// Made-up traffic of agents, with the shape of recorded one.
#pragma once

#include <random>
#include <string>

#include "net/trace/trace.hpp"

// Sessions of agents that grow by a few blocks a turn, sometimes from an earlier turn.
inline net::Trace agent_trace(uint64_t seed, uint32_t sessions, uint32_t turns) {
  std::mt19937_64 random(seed);
  const auto draw = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random() % (high - low + 1));
  };
  net::Trace trace;
  trace.block_tokens = 64;
  trace.has_prefixes = true;
  trace.clock = net::TraceClock::kOwn;
  for (uint32_t s = 0; s < sessions; ++s) {
    trace.sessions.push_back({"s" + std::to_string(s), 0, turns});
    const auto first = static_cast<uint32_t>(trace.requests.size());
    for (uint32_t t = 0; t < turns; ++t) {
      net::TraceRequest request;
      request.session = s;
      request.start_s = 10.0 * t;
      if (t > 0) {
        request.after = first + t - 1;
        request.think_s = draw(0, 20);
        request.shared_with = draw(0, 4) == 0 ? first + draw(0, t - 1) : first + t - 1;
        const uint32_t whole = trace.requests[*request.shared_with].blocks;
        request.shared_blocks = draw(0, 4) == 0 ? draw(0, whole) : whole;
      }
      request.blocks = request.shared_blocks + draw(1, t == 0 ? 60 : 12);
      request.input_tokens = request.blocks * 64 + draw(0, 63);
      request.output_tokens = draw(1, 300);
      trace.requests.push_back(request);
    }
  }
  return trace;
}
