// The move log: every move of a state or a page, in the order in which the worker sees them. Kept
// by the scheduler, who alone knows that order: it sends the plans, and what the cache manager gave
// away or took back comes to it with the commands.
//
// Invariant: numbers ascend by one; the ring holds the newest `capacity` records.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "memory/block_pool.hpp"
#include "memory/move_record.hpp"

namespace memory {

// Where the blocks lie that a log speaks of.
struct MoveGeometry {
  uint32_t page_tokens = 0;
  BlockPool::Region states, pages;
  const BlockPool::Region& region(BlockKind kind) const {
    return kind == BlockKind::kState ? states : pages;
  }
};

// What a reader of the log wants to see of it.
struct MoveFilter {
  std::optional<MoveKind> move;
  std::optional<BlockKind> block;
  std::optional<OwnerKind> owner_kind;
  uint64_t owner = 0;             // with owner_kind
  std::optional<uint32_t> index;  // virtual, as source or target
  bool matches(const MoveRecord& record) const;
};

struct MoveQuery {
  MoveFilter filter;
  uint64_t from = 0;    // a number; 0: the newest `max` that match
  uint32_t max = 4096;  // records
};
struct MovePage {
  MoveGeometry geometry;
  uint64_t first = 1, next = 1;  // what the ring holds
  std::vector<MoveRecord> records;
};

class MoveLog {
 public:
  using Listener = std::function<void(const MoveRecord&)>;

  explicit MoveLog(uint32_t capacity);  // a power of two

  // Numbers the record and fills in the physical places that its writer does not know.
  void append(const MoveRecord& record);
  // Hears every record from now on.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  uint64_t next() const { return next_; }  // the number of the next record
  uint64_t first() const { return next_ - ring_.size(); }
  // The records of the ring that match, ascending; geometry is the caller's to fill in.
  MovePage page(const MoveQuery& query) const;
  // In [first, next).
  const MoveRecord& at(uint64_t number) const { return ring_[(number - 1) & mask_]; }

 private:
  uint32_t& physical(BlockKind kind, uint32_t index);
  void locate(BlockKind kind, BlockPlace& place);

  std::vector<MoveRecord> ring_;  // by (number - 1) & mask_
  uint64_t mask_ = 0, next_ = 1;
  std::vector<uint32_t> places_[2];  // by kind and virtual index
  std::vector<Listener> listeners_;
};

}  // namespace memory
