// An adapter as the forward uses it: the factors of every layer in the layout of an Ops. Invariant:
// immutable after construction, as a HybridNetwork; the base it is used with stays untouched.
#pragma once

#include <vector>

#include "kernels/adapter/adapted_experts.hpp"
#include "runtime/adapter/adapter_parameters.hpp"

namespace runtime {

struct LayerAdapter {
  kernels::LowRank out;              // o_proj of KDA or MLA
  kernels::LowRank query, latent;    // q_a_proj, kv_a_proj_with_mqa
  kernels::LowRank gate_up, down;    // of the dense layer or the shared experts
  std::vector<kernels::ExpertLowRanks> experts;  // of all routed experts, or none
};

// What a forward with an adapter needs beside a network's scratch. Grows with use.
struct AdapterScratch {
  kernels::LowRankScratch low_rank;
  kernels::AdaptedExpertsScratch experts;
};

// One layer's part, for the layer's forward; layer null: no adapter.
struct LayerAdapterUse {
  const LayerAdapter* layer = nullptr;
  AdapterScratch* scratch = nullptr;

  // y += B (A x) with the factors `which` of the layer.
  void add(kernels::Ops& ops, kernels::LowRank LayerAdapter::*which, kernels::Rows x,
           kernels::MutableRows y, size_t rows) const {
    if (layer != nullptr)
      kernels::add_low_rank(ops, layer->*which, x, y, rows, scratch->low_rank);
  }
};

class NetworkAdapter {
 public:
  // `parameters` are needed only during the call.
  NetworkAdapter(const AdapterParameters<float>& parameters, kernels::Ops& ops);

  const LayerAdapter& layer(size_t index) const { return layers_[index]; }

 private:
  std::vector<LayerAdapter> layers_;
};

}  // namespace runtime
