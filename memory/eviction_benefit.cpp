// Benefit per byte. What a checkpoint saves is the replay from the nearest checkpoint above it to
// its own position; what it costs is its state and, in a leaf, the KV that only it makes usable.
// The chance that somebody comes back falls with the time since somebody last did.
//
// That chance changes with every tick, for all nodes at once, but not their order within a class of
// equal saving per byte: there the oldest is the least worth. So nodes are kept by class, each
// class by age, and a pick compares one node per class.
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "memory/eviction.hpp"

namespace memory {
namespace {

constexpr int kClassesPerOctave = 4;  // savings within a class differ by less than 2^(1/4) = 1.19

class BenefitPolicy : public EvictionPolicy {
 public:
  BenefitPolicy(const CacheCosts& costs, const BenefitWeights& weights)
      : costs_(costs), weights_(weights) {}

  void refresh(const RadixTree& tree, std::span<const NodeId> changed) override {
    for (const NodeId id : changed) {
      if (id.index >= placed_.size()) placed_.resize(id.index + 1);
      auto& placed = placed_[id.index];
      const auto place = place_of(tree, id);
      if (placed == place) continue;
      if (placed) erase(id, *placed);
      if (place) classes_[place->shelf].insert({place->tick, id});
      placed = place;
    }
  }

  std::optional<NodeId> pick(const RadixTree& tree, Shortage shortage) override {
    const bool any = shortage.exchangeable || !shortage.pages;
    std::optional<NodeId> best;
    double least = 0;
    for (const auto& [shelf, nodes] : classes_) {
      if (!any && !shelf.pages) continue;
      const auto& [tick, id] = *nodes.begin();
      const double age = static_cast<double>(tree.tick() - tick) + 1;
      const double score = std::exp2(shelf.worth / double{kClassesPerOctave}) / age;
      if (!best || score < least) {
        best = id;
        least = score;
      }
    }
    return best;
  }

 private:
  struct Shelf {
    bool pages = false;  // evicting frees pages too
    int worth = 0;       // class: log2 of saving per byte x chance at equal age, in quarters
    auto operator<=>(const Shelf&) const = default;
  };
  struct Place {
    Shelf shelf;
    uint64_t tick = 0;
    bool operator==(const Place&) const = default;
  };

  double replay_cost(uint32_t from, uint32_t to) const {
    const auto a = static_cast<double>(from), b = static_cast<double>(to);
    return costs_.flops_per_token * (b - a) + costs_.flops_per_token_pair * (b * b - a * a) / 2;
  }

  std::optional<Place> place_of(const RadixTree& tree, NodeId id) const {
    if (!tree.evictable(id)) return std::nullopt;
    const RadixNode& node = tree.node(id);
    const RadixTree::Bundle bundle = tree.bundle(id);
    const double bytes = static_cast<double>(costs_.state_bytes) +
                         static_cast<double>(costs_.page_bytes) * bundle.pages;
    const double saving = replay_cost(tree.checkpoint_above(id), node.end) / bytes;
    double worth = weights_.saving_power * std::log2(saving);
    if (node.superseded) worth += std::log2(weights_.superseded);
    const auto shelf = static_cast<int>(std::floor(worth * kClassesPerOctave));
    return Place{{bundle.pages > 0, shelf}, node.state_used};
  }

  void erase(NodeId id, const Place& place) {
    const auto found = classes_.find(place.shelf);
    found->second.erase({place.tick, id});
    if (found->second.empty()) classes_.erase(found);
  }

  CacheCosts costs_;
  BenefitWeights weights_;
  std::map<Shelf, std::set<std::pair<uint64_t, NodeId>>> classes_;
  std::vector<std::optional<Place>> placed_;  // by node
};

}  // namespace

std::unique_ptr<EvictionPolicy> make_benefit_policy(const CacheCosts& costs,
                                                    const BenefitWeights& weights) {
  return std::make_unique<BenefitPolicy>(costs, weights);
}

std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     const CacheCosts& costs) {
  if (name == "benefit") return make_benefit_policy(costs);
  if (name == "lru") return make_lru_policy();
  return nullptr;
}

}  // namespace memory
