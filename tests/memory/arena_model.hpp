// A worker in small: runs memory commands on an arena of tagged cells, as a device would on bytes.
// Reading a block VERIFYs that all its cells carry one tag, so that two blocks that overlap, a lost
// move or a missing zero fill are seen at once.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/verify.hpp"
#include "memory/block_pool.hpp"

namespace tests {

class ArenaModel {
 public:
  explicit ArenaModel(const memory::BlockPool& pool)
      : states_(pool.state_region()), pages_(pool.page_region()) {
    cell_ = std::gcd(states_.block_bytes, pages_.block_bytes);
    cell_ = std::gcd(cell_, std::gcd(states_.offset, pages_.offset));
    cells_.resize(pool.layout().arena_bytes / cell_);
  }

  void run(const std::vector<memory::MemoryCommand>& commands) {
    for (const auto& command : commands) std::visit([&](const auto& one) { run(one); }, command);
  }
  void write(memory::SlotId slot, uint64_t tag) {
    fill(memory::BlockKind::kState, place(memory::BlockKind::kState, slot.index, slot.generation),
         tag);
  }
  void write(memory::PageId page, uint64_t tag) {
    fill(memory::BlockKind::kPage, place(memory::BlockKind::kPage, page.index, page.generation),
         tag);
  }
  uint64_t read(memory::SlotId slot) const {
    return read(memory::BlockKind::kState,
                place(memory::BlockKind::kState, slot.index, slot.generation));
  }
  uint64_t read(memory::PageId page) const {
    return read(memory::BlockKind::kPage,
                place(memory::BlockKind::kPage, page.index, page.generation));
  }
  // Host copies: what each holds.
  const std::map<memory::HostBlock, uint64_t>& host() const { return host_; }
  // What was written to a file so far, and what each copy held.
  const std::vector<std::pair<memory::SpillItem, uint64_t>>& spilled() const { return spilled_; }
  void adopt(memory::HostBlock block, uint64_t tag) { VERIFY(host_.emplace(block, tag).second); }

 private:
  struct Entry {
    uint32_t generation = 0, physical = 0;
  };
  struct Cell {
    uint64_t tag = 0;  // 0: zero-filled, or never written
    memory::BlockKind kind = memory::BlockKind::kState;
  };
  std::pair<size_t, size_t> cells_of(memory::BlockKind kind, uint32_t physical) const {
    const auto& region = kind == memory::BlockKind::kState ? states_ : pages_;
    VERIFY(physical < region.blocks);
    const size_t first = (region.offset + physical * region.block_bytes) / cell_;
    return {first, first + region.block_bytes / cell_};
  }
  void fill(memory::BlockKind kind, uint32_t physical, uint64_t tag) {
    const auto [first, last] = cells_of(kind, physical);
    for (size_t i = first; i < last; ++i) cells_[i] = {tag, kind};
  }
  uint64_t read(memory::BlockKind kind, uint32_t physical) const {
    const auto [first, last] = cells_of(kind, physical);
    for (size_t i = first; i < last; ++i) VERIFY(cells_[i].tag == cells_[first].tag);
    return cells_[first].tag;
  }
  uint32_t place(memory::BlockKind kind, uint32_t id, uint32_t generation) const {
    const Entry& entry = table_.at({kind, id});
    VERIFY(entry.generation == generation);
    return entry.physical;
  }
  void run(const memory::Bind& bind) {
    Entry& entry = table_[{bind.kind, bind.id}];
    VERIFY(bind.generation > entry.generation);
    entry = {bind.generation, bind.physical};
    if (bind.zero) fill(bind.kind, bind.physical, 0);
    const auto [first, last] = cells_of(bind.kind, bind.physical);
    for (size_t i = first; i < last; ++i) {
      VERIFY(cells_[i].tag == 0 || cells_[i].kind == bind.kind);  // never the other kind's bytes
    }
  }
  void run(const memory::Move& move) {
    Entry& entry = table_.at({move.kind, move.id});
    VERIFY(entry.generation == move.generation);
    VERIFY(entry.physical == move.from);
    const auto from = cells_of(move.kind, move.from), to = cells_of(move.kind, move.to);
    for (size_t i = 0; i < from.second - from.first; ++i) {
      cells_[to.first + i] = cells_[from.first + i];
    }
    entry.physical = move.to;
  }

  void run(const memory::StageOut& stage) {
    const uint64_t tag = read(stage.kind, place(stage.kind, stage.id, stage.generation));
    VERIFY(host_.emplace(stage.host, tag).second);
  }
  void run(const memory::StageIn& stage) {
    fill(stage.kind, place(stage.kind, stage.id, stage.generation), host_.at(stage.host));
  }
  void run(const memory::Discard& discard) { VERIFY(host_.erase(discard.host) == 1); }

  void run(const memory::Spill& spill) {
    for (const memory::SpillItem& item : spill.items) {
      const uint64_t tag = item.host.value != 0
                               ? host_.at(item.host)
                               : read(item.kind, place(item.kind, item.id, item.generation));
      spilled_.push_back({item, tag});
    }
  }

  memory::BlockPool::Region states_, pages_;
  uint64_t cell_ = 1;
  std::vector<Cell> cells_;
  std::map<std::pair<memory::BlockKind, uint32_t>, Entry> table_;
  std::map<memory::HostBlock, uint64_t> host_;
  std::vector<std::pair<memory::SpillItem, uint64_t>> spilled_;
};

}  // namespace tests
