#include "runtime/adapter/adapter.hpp"

#include <cmath>
#include <utility>

#include "runtime/counter_random.hpp"

namespace runtime {

Adapter::Adapter(const ModelConfig& config, AdapterSettings chosen)
    : settings(std::move(chosen)), layout(config, settings), factors(layout.size()) {
  settings.targets = layout.targets();
}

void Adapter::initialise(uint64_t seed) {
  for (const Parameter& p : layout.all()) {
    const CounterRandom random(seed, p.name);
    const double inputs = static_cast<double>(p.shape.back());
    const double bound = std::sqrt(6 / (inputs + layout.rank()));
    const bool is_a = p.name.ends_with(".lora_A");
    for (size_t i = 0; i < p.count; ++i)
      factors[p.offset + i] = is_a ? static_cast<float>(random.uniform(i, -bound, bound)) : 0.0f;
  }
}

}  // namespace runtime
