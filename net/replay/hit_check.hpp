// What the cache finds of each request of a trace when nothing is ever evicted and requests come
// one after another: the real scheduler and cache, with the trace's blocks as pages. An
// independent count of the trace must give the same numbers.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "net/trace/trace.hpp"

namespace net {

struct HitRow {
  uint32_t request = 0;  // in the trace's order
  uint32_t blocks = 0;   // of its prompt
  uint32_t ideal = 0;    // that some earlier prompt begins with
  uint32_t kv = 0;       // whose KV the cache had
  uint32_t usable = 0;   // that were not computed again: up to the deepest checkpoint
};

// Throws std::invalid_argument for a trace without prefixes, or whose blocks cannot be pages.
std::vector<HitRow> check_hits(const Trace& trace);

// {"requests", "blocks", "ideal_hit_blocks", "kv_hit_blocks", "usable_hit_blocks"} as the last of
// one JSON object a line for each request, or alone and for people.
void write_hits(const std::vector<HitRow>& rows, bool json, std::ostream& out);

}  // namespace net
