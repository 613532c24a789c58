// Runs step plans: executes memory commands, builds the batch, calls the model, samples. Owned by
// the worker actor's thread, which is the only one to touch its memory. Invariant: the
// virtual-to-physical tables change only by Bind and Move.
#pragma once

#include <memory>
#include <optional>

#include "kernels/device.hpp"
#include "memory/block_pool.hpp"
#include "runtime/host_arena.hpp"
#include "runtime/model.hpp"
#include "runtime/spill.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

struct EngineLayout {  // where the pool put the two kinds of blocks in the arena
  uint64_t arena_bytes = 0;
  memory::BlockPool::Region states, pages;
  uint64_t host_bytes = 0;  // of host memory, for what leaves the device

  // Without a pool: so many slots, then so many pages.
  static EngineLayout side_by_side(const CacheGeometry& geometry, uint32_t slots, uint32_t pages);
};

class Engine {
 public:
  Engine(kernels::Device& device, std::unique_ptr<Model> model, const EngineLayout& layout);
  ~Engine();
  // Executes the commands in order. A result comes back iff the plan holds a Forward (at most one).
  std::optional<StepResult> run(const StepPlan& plan);
  HostArena& host();                          // to be filled before the first plan
  void spill_to(SpillTarget target);          // where a Spill writes; without it, nowhere
  std::optional<SpillReport> take_spilled();  // of the last Spill

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace runtime
