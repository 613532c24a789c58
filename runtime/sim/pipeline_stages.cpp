#include "runtime/sim/pipeline_stages.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

void count_input(PipelineStage& stage, uint32_t sources) {
  const auto same = std::find_if(stage.inputs.begin(), stage.inputs.end(),
                                 [&](const auto& input) { return input.first == sources; });
  if (same != stage.inputs.end()) {
    ++same->second;
  } else {
    stage.inputs.emplace_back(sources, 1);
  }
}

}  // namespace

std::vector<PipelineStage> cut_stages(const ModelGeometry& geometry, uint32_t stages) {
  const uint32_t layers = geometry.layer_count();
  VERIFY(stages >= 1 && stages <= layers);
  std::vector<PipelineStage> cut;
  const uint32_t small = layers / stages, larger = layers % stages;
  uint32_t first = 0;
  for (uint32_t index = 0; index < stages; ++index) {
    PipelineStage stage;
    stage.first = first;
    stage.last = first + small + (index >= stages - larger ? 1 : 0);
    stage.has_embedding = index == 0;
    stage.has_head = index + 1 == stages;
    stage.bank_rows = geometry.layers[first].bank_rows;
    for (uint32_t i = stage.first; i < stage.last; ++i) {
      const auto& layer = geometry.layers[i];
      ++(layer.is_mla ? stage.mla : stage.kda);
      ++(layer.is_moe ? stage.moe : stage.dense);
      count_input(stage, layer.attention_sources);
      count_input(stage, layer.ffn_sources);
    }
    if (stage.has_head) count_input(stage, geometry.layers.back().ffn_sources);  // the readout
    first = stage.last;
    cut.push_back(std::move(stage));
  }
  VERIFY(first == layers);
  return cut;
}

}  // namespace runtime
