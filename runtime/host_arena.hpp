// The worker's host memory: copies of states and pages that left the device, each with the checksum
// of the bytes as they left. Blocks come and go as the cache manager says; it has the accounting.
// What was discarded is kept for the next block of its size, within the budget.
//
// Invariant: bytes in use and kept for reuse together never exceed the budget by more than a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/ids.hpp"

namespace runtime {

class HostArena {
 public:
  explicit HostArena(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  struct Copy {
    std::unique_ptr<std::byte[]> data;
    size_t bytes = 0;
    uint64_t checksum = 0;
    std::span<const std::byte> span() const { return {data.get(), bytes}; }
  };
  // A block to be filled, and then sealed.
  std::byte* add(memory::HostBlock block, size_t bytes);
  void seal(memory::HostBlock block);                     // its bytes are there: they must stay so
  void seal(memory::HostBlock block, uint64_t checksum);  // as it was known before
  const Copy& at(memory::HostBlock block) const;          // VERIFYs that it is there
  bool intact(memory::HostBlock block) const;             // are the bytes those that were sealed?
  void discard(memory::HostBlock block);

  std::byte* mutable_data(memory::HostBlock block);  // tests: to spoil it

 private:
  void trim(size_t spared);  // gives back what is kept for reuse, but for blocks of this size

  uint64_t bytes_max_;
  uint64_t bytes_ = 0;  // in use and kept
  std::unordered_map<uint64_t, Copy> copies_;
  std::unordered_map<size_t, std::vector<std::unique_ptr<std::byte[]>>> spare_;  // by size
};

}  // namespace runtime
