#include "memory/host_store.hpp"

#include "kernels/base/verify.hpp"

namespace memory {

std::optional<HostBlock> HostStore::find(BlockKind kind, const PrefixHash& prefix) const {
  const Names& of_kind = names_[static_cast<size_t>(kind)];
  const auto found = of_kind.find(prefix);
  return found == of_kind.end() ? std::nullopt : std::optional(found->second);
}

uint32_t HostStore::count(BlockKind kind) const {
  return static_cast<uint32_t>(names_[static_cast<size_t>(kind)].size());
}

uint64_t HostStore::bytes() const {
  return count(BlockKind::kState) * config_.state_bytes +
         count(BlockKind::kPage) * config_.page_bytes;
}

// ---- order ----

bool HostStore::idle(const Copy& copy) const {
  if (copy.pins > 0) return false;
  return copy.kind == BlockKind::kState || needed_.count(copy.at.prefix) == 0;
}

void HostStore::shelve(HostBlock block) {
  const Copy& copy = copies_.at(block);
  if (idle(copy)) idle_.insert({copy.used, block});
}

void HostStore::unshelve(HostBlock block) { idle_.erase({copies_.at(block).used, block}); }

void HostStore::use(HostBlock block) {
  unshelve(block);
  copies_.at(block).used = ++tick_;
  shelve(block);
}

void HostStore::pin(HostBlock block) {
  unshelve(block);
  ++copies_.at(block).pins;
}

void HostStore::unpin(HostBlock block) {
  Copy& copy = copies_.at(block);
  VERIFY(copy.pins > 0);
  --copy.pins;
  shelve(block);
}

void HostStore::need(const PrefixHash& page, int32_t more) {
  const auto here = find(BlockKind::kPage, page);
  if (here) unshelve(*here);
  const auto count = needed_.try_emplace(page, 0).first;
  count->second += static_cast<uint32_t>(more);
  if (count->second == 0) needed_.erase(count);
  if (here) shelve(*here);
}

// ---- coming and going ----

HostBlock HostStore::add(BlockKind kind, const PrefixPoint& at, uint64_t used) {
  const HostBlock block{++last_block_};
  copies_[block] = {kind, at, used, 0};
  VERIFY(names(kind).emplace(at.prefix, block).second);
  shelve(block);
  return block;
}

void HostStore::remove(HostBlock block) {
  unshelve(block);
  const Copy copy = copies_.at(block);
  copies_.erase(block);
  VERIFY(names(copy.kind).erase(copy.at.prefix) == 1);
  need(copy.at.needs, -1);
}

bool HostStore::make_room(uint64_t more, std::vector<MemoryCommand>& commands) {
  if (more > config_.bytes_max) return false;
  while (bytes() + more > config_.bytes_max) {
    if (idle_.empty()) return false;
    const HostBlock victim = idle_.begin()->second;
    ++evicted_[static_cast<size_t>(copies_.at(victim).kind)];
    remove(victim);
    commands.push_back(Discard{victim});
  }
  return true;
}

std::optional<HostBlock> HostStore::insert(BlockKind kind, const PrefixPoint& at,
                                           std::vector<MemoryCommand>& commands) {
  if (const auto here = find(kind, at.prefix)) {
    use(*here);
    return std::nullopt;
  }
  need(at.needs, 1);  // first: what it needs must not go to make room for it
  if (make_room(size(kind), commands)) return add(kind, at, ++tick_);
  need(at.needs, -1);
  return std::nullopt;
}

std::optional<HostBlock> HostStore::adopt(BlockKind kind, const PrefixPoint& at) {
  if (find(kind, at.prefix) || bytes() + size(kind) > config_.bytes_max) return std::nullopt;
  need(at.needs, 1);
  return add(kind, at, --adopted_);
}

bool HostStore::forget(HostBlock block, std::vector<MemoryCommand>& commands) {
  if (copies_.count(block) == 0) return false;
  remove(block);
  commands.push_back(Discard{block});
  return true;
}

void HostStore::clear(std::optional<uint64_t> name_space, std::vector<MemoryCommand>& commands) {
  std::vector<HostBlock> doomed;
  for (const auto& [block, copy] : copies_) {
    if (!name_space || copy.at.name_space == *name_space) doomed.push_back(block);
  }
  for (const HostBlock block : doomed) forget(block, commands);
}

void HostStore::check() const {
  std::unordered_map<PrefixHash, uint32_t> needed;
  uint64_t total = 0;
  size_t idle_count = 0;
  for (const auto& [block, copy] : copies_) {
    total += size(copy.kind);
    ++needed[copy.at.needs];
    VERIFY(copy.pins == 0);
    VERIFY(find(copy.kind, copy.at.prefix) == block);
    VERIFY((copy.kind == BlockKind::kState) == (copy.at.needs == copy.at.prefix));
    VERIFY(idle(copy) == (idle_.count({copy.used, block}) != 0));
    idle_count += idle(copy) ? 1 : 0;
  }
  VERIFY(needed == needed_);
  VERIFY(total == bytes());
  VERIFY(total <= config_.bytes_max);
  VERIFY(copies_.size() == names_[0].size() + names_[1].size());
  VERIFY(idle_count == idle_.size());
}

}  // namespace memory
