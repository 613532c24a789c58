#include "net/trace/agent_session.hpp"

#include <algorithm>
#include <numeric>

namespace net {
namespace {

// The blocks that one request brought, as far as prompts went through them: up to `end` first the
// prompt of `by`.
struct Visit {
  uint32_t end = 0, by = 0;
};
using Visits = std::vector<Visit>;  // by rising end

uint32_t visitor_of(const Visits& visits, uint32_t block) {
  return std::find_if(visits.begin(), visits.end(),
                      [&](const Visit& visit) { return block < visit.end; })
      ->by;
}

std::vector<uint32_t> time_order(const std::vector<TraceRequest>& requests) {
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return requests[a].start_s < requests[b].start_s;
  });
  return order;
}

// What each request waits for, by file order: the one before it in its conversation, or what the
// parent asked last before the sub-agent began.
std::vector<std::optional<uint32_t>> find_awaited(const AgentSession& session) {
  std::vector<std::optional<uint32_t>> awaited(session.requests.size());
  std::vector<std::vector<uint32_t>> by_conversation(session.conversations.size());
  for (uint32_t i = 0; i < session.requests.size(); ++i) {
    auto& before = by_conversation[session.requests[i].conversation];
    if (!before.empty()) awaited[i] = before.back();
    before.push_back(i);
  }
  for (size_t c = 0; c < by_conversation.size(); ++c) {
    const auto& conversation = session.conversations[c];
    if (!conversation.parent || by_conversation[c].empty()) continue;
    const uint32_t first = by_conversation[c].front();
    for (const uint32_t asked : by_conversation[*conversation.parent]) {
      const double start_s = session.requests[asked].start_s;
      // Of two at one time, the file's first comes first.
      if (start_s < conversation.start_s || (start_s == conversation.start_s && asked < first))
        awaited[first] = asked;
    }
  }
  return awaited;
}

}  // namespace

std::vector<SharedPrefix> share_in_order(const std::vector<TraceRequest>& requests,
                                         const std::vector<uint32_t>& order) {
  std::vector<SharedPrefix> shared(requests.size());
  std::vector<Visits> visits(requests.size());  // of the blocks that each request owns
  for (const uint32_t request : order) {
    SharedPrefix& mine = shared[request];
    bool known = true;  // so far
    for (const BlockRun& run : block_runs(requests, request)) {
      Visits& seen = visits[run.owner];
      const uint32_t end = run.first + run.count;
      const uint32_t seen_end = seen.empty() ? run.first : std::min(seen.back().end, end);
      if (known && seen_end > run.first) mine = {seen_end, visitor_of(seen, seen_end - 1)};
      known = known && seen_end == end;
      if (seen_end < end) seen.push_back({end, request});
    }
  }
  return shared;
}

void append_session(const AgentSession& session, Trace& trace) {
  const auto base = static_cast<uint32_t>(trace.requests.size());
  const auto order = time_order(session.requests);
  const auto shared = share_in_order(session.requests, order);
  const auto awaited = find_awaited(session);
  std::vector<uint32_t> place(order.size());  // in the trace, by file order
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = base + i;
  for (const uint32_t from : order) {
    TraceRequest request = session.requests[from];
    request.session = static_cast<uint32_t>(trace.sessions.size());
    request.shared_blocks = request.shared_blocks_with_answers = shared[from].blocks;
    request.shared_with.reset();
    if (shared[from].with) request.shared_with = place[*shared[from].with];
    if (awaited[from]) {
      const TraceRequest& asked = session.requests[*awaited[from]];
      request.after = place[*awaited[from]];
      if (asked.conversation != request.conversation)  // files count no pause before a sub-agent
        request.think_s = std::max(0.0, request.start_s - asked.start_s - asked.service_s);
    }
    trace.requests.push_back(std::move(request));
  }
  trace.sessions.push_back({session.name, 0, static_cast<uint32_t>(order.size())});
}

}  // namespace net
