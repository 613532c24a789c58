// One reader per format. Each throws std::runtime_error naming file, line, field, what was wrong
// and what would be right.
#pragma once

#include <vector>

#include "net/trace/trace.hpp"
#include "net/trace/trace_file.hpp"

namespace net {

inline constexpr uint32_t kMooncakeBlockTokens = 512, kAgentBlockTokens = 64,
                          kMessageBlockTokens = 64;
inline constexpr IntegerRange kTokenCounts{0, 1 << 30};
inline constexpr NumberRange kSeconds{0, 1e9};  // three decades

struct TraceOptions {
  uint32_t block_tokens = 0;  // 0: what the format says or is used with, as above
  std::string model;  // directory of the tokenizer for messages; empty: messages cannot be read
};

Trace read_mooncake(const TraceFile& file, const TraceOptions& options);
Trace read_azure(const TraceFile& file);
Trace read_agent_tree(const TraceFile& file, const TraceOptions& options);
// Each file is one session.
Trace read_agent_json(const std::vector<TraceFile>& files);
// Sessions of all files share one prefix tree.
Trace read_messages(const std::vector<TraceFile>& files, const TraceOptions& options);

// Why `blocks` cannot be the number of blocks of a prompt of `tokens`; empty if it can. Formats
// differ in whether a last partial block counts.
std::string block_count_problem(uint64_t blocks, uint32_t tokens, uint32_t block_tokens);

}  // namespace net
