// Where the worker's blocks of one kind lie: virtual id -> physical block. Changed only by Bind and
// Move, in mailbox order. Invariant: a physical block answers to one virtual id, the last that was
// bound to it.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/commands.hpp"

namespace runtime {

class BlockTable {
 public:
  explicit BlockTable(uint32_t blocks);  // physical blocks of this kind
  void bind(const memory::Bind& bind);   // VERIFYs that the generation moves forward
  void move(const memory::Move& move);   // VERIFYs that the id lies where it is moved from
  uint32_t physical(uint32_t id,
                    uint32_t generation) const;  // VERIFYs that the id is the one bound now

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Entry {
    uint32_t generation = 0;
    uint32_t physical = kNobody;
  };
  std::vector<Entry> entries_;   // by virtual index
  std::vector<uint32_t> owner_;  // by physical block: virtual index, or kNobody
};

}  // namespace runtime
