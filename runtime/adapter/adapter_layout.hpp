// The factors of a low-rank adapter, one after the other in one array of numbers, and which modules
// of a model have them.
//
// Gate and up read the same input and share A. Routed experts are "shared-outer": one A for the w1
// of all experts of a layer and one for w3, one B for w2; the other factor is each expert's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model_config.hpp"
#include "runtime/train/parameter_layout.hpp"

namespace runtime {

// Module names as a weights file spells their last part.
inline constexpr std::string_view kAdapterTargets[] = {
    "o_proj", "q_a_proj", "kv_a_proj_with_mqa", "gate_proj", "up_proj", "down_proj",
    "w1",     "w3",       "w2"};

struct AdapterSettings {
  uint32_t rank = 8;
  double alpha = 16;
  // Of kAdapterTargets; gate_proj and up_proj come together. Empty: all that the model has.
  std::vector<std::string> targets = {};

  double scale() const { return alpha / rank; }
};

// Throws std::invalid_argument naming the setting that cannot be.
void check_adapter_settings(const AdapterSettings& settings);

class AdapterLayout {
 public:
  // Throws std::invalid_argument also where the model has none of the targets' modules.
  AdapterLayout(const ModelConfig& config, const AdapterSettings& settings);

  size_t size() const { return size_; }  // numbers in all
  // "<module>.lora_A" and "<module>.lora_B", the module under its name in the model ("gate_up_proj"
  // for the pair; "experts.w1" for all experts). Of routed experts [experts or 1, ...].
  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter* find(const std::string& name) const;
  uint32_t rank() const { return rank_; }
  std::vector<std::string> targets() const;  // those that the model has, as in kAdapterTargets

 private:
  void add(std::string name, std::vector<uint64_t> shape);
  void module(const std::string& name, uint64_t n, uint64_t k);
  void layer(const ModelConfig& config, uint32_t index);
  void ffn(const ModelConfig& config, uint32_t index, const std::string& name);
  bool has(std::string_view target) const;

  uint32_t rank_;
  std::vector<std::string> targets_;
  std::vector<Parameter> parameters_;
  std::map<std::string, size_t> index_;
  size_t size_ = 0;
};

}  // namespace runtime
