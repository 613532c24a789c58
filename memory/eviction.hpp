// What leaves the cache when room is needed. A policy orders the tree's checkpoints; taking an
// inner one frees a slot, taking a leaf's frees the KV that only it needed as well.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "memory/radix_tree.hpp"

namespace memory {

// What it costs to compute a prefix again, as plain numbers, and what it costs to keep it.
struct CacheCosts {
  double flops_per_token = 1;
  double flops_per_token_pair = 0;  // attention: of a token with each one before it
  uint64_t state_bytes = 1;
  uint64_t page_bytes = 1;
};

// How a benefit policy weighs what it knows; the defaults were chosen by bench-eviction.
struct BenefitWeights {
  double saving_power = 1;       // of the saving per byte, against the age
  double superseded = 1.0 / 32;  // chance of a superseded tip, against a newest one's
};

struct Shortage {
  bool slots = false, pages = false;
  bool exchangeable = false;  // a unified pool: bytes of either kind help
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // `changed`: nodes (maybe dead ones) that changed since the last call. Always precedes pick().
  virtual void refresh(const RadixTree& tree, std::span<const NodeId> changed) = 0;
  // A node that RadixTree::evictable() accepts and whose bundle relieves the shortage.
  virtual std::optional<NodeId> pick(const RadixTree& tree, Shortage shortage) = 0;
};

// Least (recompute cost saved x chance of reuse / bytes) first, over both kinds in one currency.
std::unique_ptr<EvictionPolicy> make_benefit_policy(const CacheCosts& costs,
                                                    const BenefitWeights& weights = {});
// Slots by least recent restore or donation, pages by the least recently walked leaf.
std::unique_ptr<EvictionPolicy> make_lru_policy();
// "benefit" or "lru"; nullptr for another name.
std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     const CacheCosts& costs);

}  // namespace memory
