// The prompts seen so far as a tree of blocks: how much of a new prompt is known, and from whom.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace net {

struct SharedPrefix {
  uint32_t blocks = 0;
  std::optional<uint32_t> with;  // the first prompt that began so
};

// Invariant: every node but the root has an owner, the prompt that first went through it.
class PrefixTrie {
 public:
  SharedPrefix find(std::span<const uint64_t> blocks) const;
  // What the prompt shares with those before it; then it is one of them.
  SharedPrefix insert(std::span<const uint64_t> blocks, uint32_t owner);

 private:
  struct Edge {
    uint32_t node = 0;  // 0: the root
    uint64_t block = 0;
    bool operator==(const Edge&) const = default;
  };
  struct HashEdge {
    size_t operator()(const Edge& edge) const;
  };
  struct Walk {
    uint32_t node = 0;
    SharedPrefix shared;
  };
  Walk walk(std::span<const uint64_t> blocks) const;

  std::unordered_map<Edge, uint32_t, HashEdge> nodes_;  // by the edge that leads there
  std::vector<uint32_t> owners_{0};                     // by node; the root's is never asked for
};

}  // namespace net
