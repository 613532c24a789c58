#include "net/trace/prefix_trie.hpp"

namespace net {

// splitmix64's finaliser: block ids often count up, and so do nodes.
size_t PrefixTrie::HashEdge::operator()(const Edge& edge) const {
  uint64_t mixed = edge.block + 0x9e3779b97f4a7c15 * (uint64_t{edge.node} + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

PrefixTrie::Walk PrefixTrie::walk(std::span<const uint64_t> blocks) const {
  Walk walk;
  for (const uint64_t block : blocks) {
    const auto found = nodes_.find({walk.node, block});
    if (found == nodes_.end()) break;
    walk.node = found->second;
    ++walk.shared.blocks;
  }
  if (walk.node != 0) walk.shared.with = owners_[walk.node];
  return walk;
}

SharedPrefix PrefixTrie::find(std::span<const uint64_t> blocks) const {
  return walk(blocks).shared;
}

SharedPrefix PrefixTrie::insert(std::span<const uint64_t> blocks, uint32_t owner) {
  const Walk known = walk(blocks);
  uint32_t node = known.node;
  for (const uint64_t block : blocks.subspan(known.shared.blocks)) {
    const auto fresh = static_cast<uint32_t>(owners_.size());
    nodes_.emplace(Edge{node, block}, fresh);
    owners_.push_back(owner);
    node = fresh;
  }
  return known.shared;
}

}  // namespace net
