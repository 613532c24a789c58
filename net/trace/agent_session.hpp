// A session of an agent and its sub-agents, as both kv-cache-tester formats record it: in the order
// of the file, where a sub-agent's requests stand together. A trace has it in the order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/trace/prefix_trie.hpp"
#include "net/trace/trace.hpp"

namespace net {

struct AgentSession {
  struct Conversation {
    std::optional<uint32_t> parent;  // none: the main one
    double start_s = 0;              // in the session
  };
  std::string name;
  // In file order; of one conversation in the order of time. shared_with names one of these,
  // start_s counts from the session's start. `session` and `after` are not set.
  std::vector<TraceRequest> requests;
  std::vector<Conversation> conversations;
};

// Puts the session behind those that the trace has.
void append_session(const AgentSession& session, Trace& trace);

// What each prompt shares with those before it, if they come in this order and the prefix tree is
// the one that shared_with spans. By the indices of `requests`, the result's `with` too.
std::vector<SharedPrefix> share_in_order(const std::vector<TraceRequest>& requests,
                                         const std::vector<uint32_t>& order);

}  // namespace net
