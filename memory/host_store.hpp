// What lies in host memory: copies of states and KV pages that left the device, found by the hash
// of the prefix that they belong to. Accounting only; the worker has the bytes. Both kinds share
// one budget of bytes, and what was used least recently goes first.
//
// Invariant: a page is never evicted before the copies that need it (deeper pages of its prefix,
// states that end with it), so what is kept of a prefix is kept from its beginning on, as far as it
// is not on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/commands.hpp"
#include "memory/prefix_hash.hpp"

namespace memory {

struct HostConfig {
  uint64_t bytes_max = 0;  // 0: there is no host memory
  uint64_t state_bytes = 1, page_bytes = 1;
};

class HostStore {
 public:
  struct Copy {
    BlockKind kind = BlockKind::kState;
    PrefixPoint at;
    uint64_t used = 0;  // tick of the last use
    uint32_t pins = 0;  // by the message that is being handled: not evicted
    uint32_t needed = 0;  // by so many copies: a page is not evicted before them
  };

  explicit HostStore(const HostConfig& config) : config_(config) {}

  bool enabled() const { return config_.bytes_max > 0; }
  bool empty() const { return copies_.empty(); }
  std::optional<HostBlock> find(BlockKind kind, const PrefixHash& prefix) const;
  void use(HostBlock block);  // now
  void use_and_pin(HostBlock block);
  void unpin(HostBlock block);

  // Names a copy that is about to be made, and evicts what must go for it (as Discards). None: it
  // is there already, and used now; or there is no room for it.
  [[nodiscard]] std::optional<HostBlock> insert(BlockKind kind, const PrefixPoint& at,
                                                std::vector<MemoryCommand>& commands);
  // The same for a copy that comes from outside, such as a file: it evicts nothing, and counts as
  // used before all that are there. None: no room, or there already.
  [[nodiscard]] std::optional<HostBlock> adopt(BlockKind kind, const PrefixPoint& at);
  // False: it is gone already.
  bool forget(HostBlock block, std::vector<MemoryCommand>& commands);
  // All of a namespace, or all there is.
  void clear(std::optional<uint64_t> name_space, std::vector<MemoryCommand>& commands);

  uint64_t size(BlockKind kind) const {  // of a copy
    return kind == BlockKind::kState ? config_.state_bytes : config_.page_bytes;
  }
  uint64_t bytes_max() const { return config_.bytes_max; }
  uint64_t bytes() const;
  uint32_t count(BlockKind kind) const;
  uint64_t evicted(BlockKind kind) const { return evicted_[static_cast<size_t>(kind)]; }
  const Copy& copy(HostBlock block) const { return copies_.at(block); }
  const std::map<HostBlock, Copy>& copies() const { return copies_; }
  void check() const;  // VERIFYs the invariant

 private:
  using Names = std::unordered_map<PrefixHash, HostBlock>;
  Names& names(BlockKind kind) { return names_[static_cast<size_t>(kind)]; }
  static bool idle(const Copy& copy) { return copy.pins == 0 && copy.needed == 0; }
  // A copy's place in the order of eviction, where it may be evicted: out before a change, put
  // back behind it.
  void shelve(HostBlock block, const Copy& copy);
  void unshelve(HostBlock block, const Copy& copy);
  void need(const PrefixHash& page, int32_t more);
  HostBlock add(BlockKind kind, const PrefixPoint& at, uint64_t used);
  void remove(HostBlock block);
  bool make_room(uint64_t bytes, std::vector<MemoryCommand>& commands);

  HostConfig config_;
  std::map<HostBlock, Copy> copies_;                 // ordered, so that every run visits them alike
  Names names_[2];                                   // by kind
  std::unordered_map<PrefixHash, uint32_t> needed_;  // by how many copies, for pages here or not
  std::set<std::pair<uint64_t, HostBlock>> idle_;    // the first is evicted first
  uint64_t last_block_ = 0;
  // Adopted copies count down from here, used ones up.
  static constexpr uint64_t kStart = uint64_t{1} << 32;
  uint64_t tick_ = kStart, adopted_ = kStart;
  uint64_t evicted_[2] = {};
};

}  // namespace memory
