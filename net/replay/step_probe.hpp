// Scripted loads against a running server, whose steps are known from the outside: prompts that
// come alone, and some sequences that decode side by side.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "net/replay/http_stream.hpp"

namespace net {

struct ProbeLoad {
  uint32_t streams = 1, prompt_tokens = 0;
  uint32_t output_tokens = 1;  // 1: what is measured is the time to the first token

  bool is_prefill() const { return output_tokens == 1; }
  std::string name() const;
};

struct ProbeLimits {
  uint32_t context_length = 0, max_running = 0;
};

// Prompts of 64 to 2048 tokens, batches of 1 to 32 sequences, and few that have read much.
std::vector<ProbeLoad> probe_loads(const ProbeLimits& limits);

struct ProbeServer {
  const HttpTarget& target;
  std::string model;
  uint32_t vocabulary = 0;
};

// Microseconds, by load: the median over all rounds of the time to the first token, or between two
// tokens while all streams decode. Prompts are random and share nothing. Throws std::runtime_error
// when a request fails.
std::vector<double> probe_steps(const ProbeServer& server, const std::vector<ProbeLoad>& loads,
                                uint32_t rounds, uint64_t seed, std::ostream* progress);

}  // namespace net
