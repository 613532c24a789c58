// The blocks of a prompt, found by walking to the requests that brought them.
#include "net/trace/trace.hpp"

#include <algorithm>

namespace net {

std::vector<BlockRun> block_runs(const std::vector<TraceRequest>& requests, uint32_t request) {
  std::vector<BlockRun> runs;
  uint32_t end = requests[request].blocks;  // of what is still to be found
  for (uint32_t owner = request; end > 0;) {
    const auto& from = requests[owner];
    if (from.shared_blocks < end) {
      runs.push_back({owner, from.shared_blocks, end - from.shared_blocks});
      end = from.shared_blocks;
    }
    if (from.shared_with) owner = *from.shared_with;
  }
  std::reverse(runs.begin(), runs.end());
  return runs;
}

std::vector<uint64_t> block_ids(const Trace& trace, uint32_t request) {
  std::vector<uint64_t> ids;
  ids.reserve(trace.requests[request].blocks);
  for (const auto& run : block_runs(trace.requests, request)) {
    for (uint32_t i = 0; i < run.count; ++i)
      ids.push_back(uint64_t{run.owner} << 32 | (run.first + i));
  }
  return ids;
}

}  // namespace net
