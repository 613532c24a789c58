// Every parameter of a model, one after the other in one array of numbers: what masters, gradients
// and optimizer moments are indexed by. Linear layers that the forward stacks lie side by side in
// the order of runtime/layer_columns.hpp, so a stack is one matrix here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/model_config.hpp"

namespace runtime {

// How a parameter is stored, and so what the forward sees of its fp32 master.
enum class Precision : uint8_t {
  kFloat,   // fp32: what acts on the recurrence's time constants, and the router's bias
  kHalf,    // bf16
  kExpert,  // a routed expert's matrix: bf16, or MXFP4 in quantisation-aware training
};

struct Parameter {
  std::string name;  // of its tensor in a weights file, without the prefix
  std::vector<uint64_t> shape;
  Precision precision = Precision::kHalf;
  bool decays = false;           // weight decay: matrices, but not embeddings
  bool learned = true;           // by gradients; the router's bias is balanced instead
  size_t offset = 0, count = 0;  // in numbers
};

class ParameterLayout {
 public:
  explicit ParameterLayout(const ModelConfig& config);

  size_t size() const { return size_; }  // numbers in all
  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& at(const std::string& name) const;  // VERIFYs that it exists
  const Parameter* find(const std::string& name) const;

 private:
  void add(std::string name, std::vector<uint64_t> shape, Precision precision = Precision::kHalf);
  void linear(const std::string& name, uint64_t n, uint64_t k,
              Precision precision = Precision::kHalf);
  void layer(const ModelConfig& config, uint32_t index);
  void kda(const ModelConfig& config, const std::string& name);
  void mla(const ModelConfig& config, const std::string& name);
  void ffn(const ModelConfig& config, uint32_t index, const std::string& name);

  std::vector<Parameter> parameters_;
  std::map<std::string, size_t> index_;
  size_t size_ = 0;
};

}  // namespace runtime
