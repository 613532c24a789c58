// A recorded run of traffic, whatever file it came from: who asked, when, how long the prompt and
// the answer were, and which earlier prompt a prompt begins with. Readers make it, players play it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/request.hpp"

namespace net {

enum class TraceFormat {
  kMooncake,   // jsonl: timestamp, lengths, one hash per block of 512 tokens
  kAgentJson,  // kv-cache-tester: one session per file, with its sub-agents
  kAgentTree,  // the same sessions as csv: a row per request names what it begins with
  kMessages,   // jsonl: one conversation of OpenAI chat messages a line
  kAzure,      // csv: arrivals and lengths alone
  kRecord,     // jsonl that `sluice-serve --record` wrote
};

enum class TraceClock {
  kShared,  // start_s counts from the start of the trace
  kOwn,     // from the session's start: when sessions start is the replayer's choice
};

// A prompt that is known by content: of a conversation, the messages up to some request.
struct TraceText {
  runtime::Prompt prompt;  // a ChatPrompt holds the session's whole conversation
};

// Invariant: `after` and `shared_with` name earlier requests of the trace.
struct TraceRequest {
  uint32_t session = 0;
  uint32_t conversation = 0;  // within its session: 0 is the main one, others are sub-agents'
  // The request whose answer this one waits for in a closed loop: the previous one of its
  // conversation, or for a sub-agent's first the request of the parent that started it.
  std::optional<uint32_t> after;
  double start_s = 0;    // by the trace's clock
  double think_s = 0;    // between the answer it waits for and itself; 0 where it waits for none
  double service_s = 0;  // from itself to the end of its answer, as recorded; 0: unknown
  uint32_t input_tokens = 0, output_tokens = 0;
  // The prompt as blocks of block_tokens tokens. The first `shared_blocks` are those of the prompt
  // of `shared_with`, the earliest request with the longest common prefix; the others are its own.
  // The last block may be partial: then blocks * block_tokens > input_tokens. Tokens behind the
  // last block belong to no block.
  uint32_t blocks = 0, shared_blocks = 0;
  std::optional<uint32_t> shared_with;
  // As shared_blocks, but with the earlier prompts followed by their answers, where those are
  // known.
  uint32_t shared_blocks_with_answers = 0;
  // Where prompts are known by content: which of `texts`, of a conversation how many of its
  // messages are the prompt (the next one is the answer), and the answer's ids where recorded.
  std::optional<uint32_t> text;
  uint32_t messages = 0;
  std::vector<runtime::TokenId> answer;
};

struct TraceSession {
  std::string name;
  double start_s = 0;  // kShared: of its first request; kOwn: 0
  uint32_t requests = 0;
};

struct Trace {
  TraceFormat format = TraceFormat::kRecord;
  uint32_t block_tokens = 0;  // 0: a trace without prefixes
  bool has_prefixes = false;  // false: lengths alone, blocks are 0
  TraceClock clock = TraceClock::kShared;
  // What names no sessions has one per request.
  std::vector<TraceSession> sessions;
  // kShared: by start_s; kOwn: session by session, within one by start_s. Ties by file order.
  std::vector<TraceRequest> requests;
  std::vector<TraceText> texts;
};

// A stretch of a prompt: the blocks [first, first + count) that the request `owner` brought.
struct BlockRun {
  uint32_t owner = 0, first = 0, count = 0;
};

// A request's prompt from its first block to its last; as many runs as requests brought it.
std::vector<BlockRun> block_runs(const std::vector<TraceRequest>& requests, uint32_t request);

// The same, block by block: equal ids are equal prefixes (owner << 32 | position in the prompt).
std::vector<uint64_t> block_ids(const Trace& trace, uint32_t request);

}  // namespace net
