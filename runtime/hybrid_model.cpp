#include "runtime/hybrid_model.hpp"

namespace runtime {

std::unique_ptr<Model> load_hybrid_model(const ModelConfig& config, const WeightSource& weights,
                                         kernels::Ops& ops, const ModelOptions& options) {
  return std::make_unique<HybridModel>(config, weights, ops, options);
}

}  // namespace runtime
