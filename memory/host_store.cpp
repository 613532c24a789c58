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

void HostStore::shelve(HostBlock block, const Copy& copy) {
  if (idle(copy)) idle_.insert({copy.used, block});
}

void HostStore::unshelve(HostBlock block, const Copy& copy) {
  if (idle(copy)) idle_.erase({copy.used, block});
}

void HostStore::use(HostBlock block) {
  Copy& copy = copies_.at(block);
  unshelve(block, copy);
  copy.used = ++tick_;
  shelve(block, copy);
}

void HostStore::use_and_pin(HostBlock block) {
  Copy& copy = copies_.at(block);
  unshelve(block, copy);
  copy.used = ++tick_;
  ++copy.pins;
}

void HostStore::unpin(HostBlock block) {
  Copy& copy = copies_.at(block);
  VERIFY(copy.pins > 0);
  --copy.pins;
  shelve(block, copy);
}

void HostStore::need(const PrefixHash& page, int32_t more) {
  const auto count = needed_.try_emplace(page, 0).first;
  const uint32_t needed = count->second += static_cast<uint32_t>(more);
  if (needed == 0) needed_.erase(count);
  if (const auto here = find(BlockKind::kPage, page)) {
    Copy& copy = copies_.at(*here);
    unshelve(*here, copy);
    copy.needed = needed;
    shelve(*here, copy);
  }
}

// ---- coming and going ----

HostBlock HostStore::add(BlockKind kind, const PrefixPoint& at, uint64_t used) {
  const HostBlock block{++last_block_};
  uint32_t needed = 0;
  if (kind == BlockKind::kPage) {
    const auto count = needed_.find(at.prefix);
    if (count != needed_.end()) needed = count->second;
  }
  const Copy& copy = copies_[block] = {kind, at, used, 0, needed};
  VERIFY(names(kind).emplace(at.prefix, block).second);
  shelve(block, copy);
  return block;
}

void HostStore::remove(HostBlock block) {
  const auto found = copies_.find(block);
  VERIFY(found != copies_.end());
  const Copy copy = found->second;
  unshelve(block, copy);
  copies_.erase(found);
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
    const auto needed_here = needed_.find(copy.at.prefix);
    const bool is_needed = copy.kind == BlockKind::kPage && needed_here != needed_.end();
    VERIFY(copy.needed == (is_needed ? needed_here->second : 0));
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
