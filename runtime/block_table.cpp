#include "runtime/block_table.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

BlockTable::BlockTable(uint32_t blocks) : owner_(blocks, kNobody) {}

void BlockTable::bind(const memory::Bind& bind) {
  VERIFY(bind.physical < owner_.size());
  if (bind.id >= entries_.size()) entries_.resize(size_t{bind.id} + 1);
  Entry& entry = entries_[bind.id];
  const bool known = entry.physical != kNobody;
  VERIFY(!known || bind.generation > entry.generation);
  if (known && owner_[entry.physical] == bind.id) owner_[entry.physical] = kNobody;
  entry = {bind.generation, bind.physical};
  owner_[bind.physical] = bind.id;
}

void BlockTable::move(const memory::Move& move) {
  VERIFY(move.to < owner_.size());
  VERIFY(physical(move.id, move.generation) == move.from);
  VERIFY(move.from != move.to);
  owner_[move.from] = kNobody;
  entries_[move.id].physical = move.to;
  owner_[move.to] = move.id;
}

uint32_t BlockTable::physical(uint32_t id, uint32_t generation) const {
  VERIFY(id < entries_.size());
  const Entry& entry = entries_[id];
  VERIFY(entry.physical != kNobody);
  VERIFY(entry.generation == generation);  // a stale id: the block has a new owner
  VERIFY(owner_[entry.physical] == id);
  return entry.physical;
}

}  // namespace runtime
