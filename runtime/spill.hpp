// Writes what is cached to a file when the server ends, and fills host memory from it when it
// starts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "kernels/base/result.hpp"
#include "memory/hybrid_cache.hpp"
#include "memory/spill_file.hpp"
#include "runtime/host_arena.hpp"

namespace runtime {

struct SpillTarget {
  std::string directory;  // empty: nothing is written
  memory::SpillHeader header;
};

struct SpillReport {
  uint32_t states = 0, pages = 0;
  uint64_t bytes = 0;   // of the file
  bool whole = true;    // false: the time, or the memory, ended first
  std::string trouble;  // why there is no file
};

std::string spill_text(const SpillReport& report);  // "12 states and 340 pages (3.1 MB)"

// The bytes of an item and their checksum; none: they are not what they were.
struct SpillSource {
  std::span<const std::byte> bytes;
  uint64_t checksum = 0;
};
using SpillFetch = std::function<std::optional<SpillSource>(const memory::SpillItem&)>;

// Stops at the deadline: what was written until then is the most valuable part, and whole.
SpillReport write_spill(const SpillTarget& target, const memory::Spill& spill,
                        const SpillFetch& fetch);

// Adopts as much as host memory holds. Without a file the report is empty.
SpillReport load_spill(const SpillTarget& target, memory::HybridCache& cache, HostArena& host);

}  // namespace runtime
