// The parameters of a training run: fp32 masters, the values the forward sees (rounded to what a
// weights file stores), and the source that a network packs them from. So the network of a training
// step is the network that a server loads from the exported file, to the bit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "runtime/model_config.hpp"
#include "runtime/safetensors_writer.hpp"
#include "runtime/train/parameter_layout.hpp"
#include "runtime/train/parameter_start.hpp"
#include "runtime/weight_source.hpp"

namespace runtime {

class ParameterStore final : public WeightSource {
 public:
  // quantised: routed experts are seen as MXFP4 (quantisation-aware training; their gradients pass
  // straight through to the masters).
  ParameterStore(const ModelConfig& config, bool quantised);

  const ParameterLayout& layout() const { return layout_; }
  bool quantised() const { return quantised_; }
  float* masters() { return masters_.data(); }
  const float* masters() const { return masters_.data(); }
  float* values() { return values_.data(); }  // [layout().size()]
  const float* values() const { return values_.data(); }

  void initialise(uint64_t seed, ParameterStart start = ParameterStart::kNoise);
  void load(const WeightSource& weights);  // masters and values; throws naming the tensor
  // After the masters changed: values of everything, or of the routed experts alone (the optimizer
  // rounds the others as it goes).
  void refresh(kernels::cpu::ThreadPool& pool);
  void refresh_experts(kernels::cpu::ThreadPool& pool);
  // Declares every tensor as the forward sees it, under `prefix` + its name. The store must outlive
  // the writer's work.
  void write(const std::string& prefix, SafeTensorsWriter& writer) const;

  kernels::MatrixView matrix(const std::string& name, size_t n, size_t k) const override;
  kernels::MatrixView table(const std::string& name, size_t n, size_t k) const override;
  std::vector<float> floats(const std::string& name, std::vector<uint64_t> shape) const override;
  std::vector<float> padded_floats(const std::string& name, size_t count) const override;

 private:
  void quantise(const Parameter& parameter);
  void write_packed(const std::string& prefix, const Parameter& parameter,
                    SafeTensorsWriter& writer) const;

  ParameterLayout layout_;
  bool quantised_;
  ModelConfig config_;
  std::vector<float> masters_, values_;
  // Of quantised experts, indexed by a parameter's offset: two codes a byte, a scale for 32 codes.
  std::vector<uint8_t> codes_, scales_;
};

}  // namespace runtime
