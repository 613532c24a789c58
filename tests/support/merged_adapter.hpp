// A network's parameters with an adapter worked into them, W + scale B A: what a forward with the
// adapter must equal, and what finite differences of the factors differentiate.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/adapter/adapter_layout.hpp"
#include "runtime/train/parameter_layout.hpp"

namespace support {

// The base's tensors that one module of an adapter adds to, in the order of its outputs.
inline std::vector<std::string> base_tensors(const std::string& module, size_t expert) {
  const auto cut = [&](const std::string& end) {
    return module.substr(0, module.size() - end.size());
  };
  if (module.ends_with("gate_up_proj"))
    return {cut("gate_up_proj") + "gate_proj.weight", cut("gate_up_proj") + "up_proj.weight"};
  const size_t at = module.find("experts.w");
  if (at == std::string::npos || module.find("shared_experts") != std::string::npos)
    return {module + ".weight"};
  return {module.substr(0, at) + "experts." + std::to_string(expert) + "." +
          module.substr(at + std::string("experts.").size()) + ".weight"};
}

template <class Real>
std::vector<Real> merge_adapter(const runtime::ParameterLayout& base,
                                const std::vector<Real>& values,
                                const runtime::AdapterLayout& layout,
                                const std::vector<Real>& factors, double scale) {
  std::vector<Real> merged = values;
  for (const runtime::Parameter& a : layout.all()) {
    if (!a.name.ends_with(".lora_A")) continue;
    const std::string module = a.name.substr(0, a.name.size() - std::string(".lora_A").size());
    const runtime::Parameter& b = *layout.find(module + ".lora_B");
    const size_t experts = a.shape.size() == 3 ? std::max(a.shape[0], b.shape[0]) : 1;
    const size_t rank = layout.rank(), k = a.shape.back(), n = b.shape[b.shape.size() - 2];
    for (size_t expert = 0; expert < experts; ++expert) {
      const Real* of_a = factors.data() + a.offset + (a.count > rank * k ? expert * rank * k : 0);
      const Real* of_b = factors.data() + b.offset + (b.count > rank * n ? expert * rank * n : 0);
      size_t row = 0;
      for (const std::string& name : base_tensors(module, expert)) {
        const runtime::Parameter& w = base.at(name);
        VERIFY(w.shape.back() == k);
        for (size_t i = 0; i < w.shape[0]; ++i, ++row)
          for (size_t j = 0; j < k; ++j)
            for (size_t r = 0; r < rank; ++r)
              merged[w.offset + i * k + j] += Real(scale) * of_b[row * rank + r] * of_a[r * k + j];
      }
      VERIFY(row == n);
    }
  }
  return merged;
}

}  // namespace support
