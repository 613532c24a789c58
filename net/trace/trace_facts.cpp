#include "net/trace/trace_facts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace net {
namespace {

enum class PromptKind { kCold, kExtending, kDiverging };

PromptKind kind_of(const Trace& trace, const TraceRequest& request) {
  if (!request.shared_with) return PromptKind::kCold;
  const TraceRequest& earlier = trace.requests[*request.shared_with];
  const uint32_t whole = std::min(earlier.blocks, earlier.input_tokens / trace.block_tokens);
  return request.shared_blocks >= whole ? PromptKind::kExtending : PromptKind::kDiverging;
}

// A block is known by the request that brought it and its place in the prompt.
using Block = std::pair<uint32_t, uint32_t>;

Block last_shared_block(const Trace& trace, const TraceRequest& request) {
  uint32_t owner = *request.shared_with;
  while (trace.requests[owner].shared_blocks >= request.shared_blocks)
    owner = *trace.requests[owner].shared_with;
  return {owner, request.shared_blocks - 1};
}

uint64_t count_branch_points(const Trace& trace) {
  std::map<Block, uint32_t> ways;  // that begin behind a block, besides its owner's own
  for (const TraceRequest& request : trace.requests)
    if (request.shared_with && request.blocks > request.shared_blocks)
      ++ways[last_shared_block(trace, request)];
  return static_cast<uint64_t>(std::count_if(ways.begin(), ways.end(), [&](const auto& entry) {
    const auto& [block, others] = entry;
    const bool owner_goes_on = block.second + 1 < trace.requests[block.first].blocks;
    return others + (owner_goes_on ? 1 : 0) >= 2;
  }));
}

void count_prompts(const Trace& trace, TraceFacts& facts) {
  for (const TraceRequest& request : trace.requests) {
    facts.blocks += request.blocks;
    facts.ideal_hit_blocks += request.shared_blocks;
    facts.ideal_hit_blocks_with_answers += request.shared_blocks_with_answers;
    const PromptKind kind = kind_of(trace, request);
    ++(kind == PromptKind::kCold        ? facts.cold
       : kind == PromptKind::kExtending ? facts.extending
                                        : facts.diverging);
  }
  facts.branch_points = count_branch_points(trace);
}

}  // namespace

TraceFacts facts_of(const Trace& trace) {
  TraceFacts facts;
  facts.requests = trace.requests.size();
  facts.sessions = trace.sessions.size();
  std::vector<uint64_t> inputs, outputs, contexts, per_session, largest(trace.sessions.size());
  std::set<std::pair<uint32_t, uint32_t>> conversations;
  for (const TraceRequest& request : trace.requests) {
    const uint64_t context = uint64_t{request.input_tokens} + request.output_tokens;
    inputs.push_back(request.input_tokens);
    outputs.push_back(request.output_tokens);
    contexts.push_back(context);
    largest[request.session] = std::max(largest[request.session], context);
    conversations.insert({request.session, request.conversation});
    facts.span_s = std::max(facts.span_s, request.start_s + request.service_s);
    if (request.service_s > 0) ++facts.timed_answers;
  }
  for (const TraceSession& session : trace.sessions) per_session.push_back(session.requests);
  facts.conversations = conversations.size();
  facts.input_tokens = distribution_of(std::move(inputs));
  facts.output_tokens = distribution_of(std::move(outputs));
  facts.context_tokens = distribution_of(std::move(contexts));
  facts.session_requests = distribution_of(std::move(per_session));
  facts.session_context_tokens = distribution_of(std::move(largest));
  if (trace.has_prefixes) count_prompts(trace, facts);
  return facts;
}

}  // namespace net
