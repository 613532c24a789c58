// A low-rank adapter: its settings and the numbers of its factors, and the directory it is kept in,
// as the PEFT library writes one: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/adapter/adapter_layout.hpp"

namespace runtime {

struct Adapter {
  AdapterSettings settings;
  AdapterLayout layout;
  std::vector<float> factors;  // [layout.size()]

  // All zero. Throws std::invalid_argument as AdapterLayout does.
  Adapter(const ModelConfig& config, AdapterSettings chosen);

  // A from a uniform distribution of variance 2 / (inputs + rank) (Glorot and Bengio 2010), B zero:
  // at first the model is its base.
  void initialise(uint64_t seed);
};

// What the directory says of the base.
struct AdapterBase {
  std::string model;   // where its weights lie
  std::string prefix;  // what the names of its tensors begin with
};

// Factors are stored in fp32. Throws std::runtime_error naming the path.
void save_adapter(const std::string& directory, const Adapter& adapter, const AdapterBase& base);

// For a model of this configuration. Throws std::runtime_error naming the file and the field or
// tensor that is wrong.
Adapter load_adapter(const std::string& directory, const ModelConfig& config);

}  // namespace runtime
