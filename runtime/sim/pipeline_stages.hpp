// Which layers a pipeline stage holds: contiguous runs, the larger ones on late stages.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/sim/model_geometry.hpp"

namespace runtime {

struct PipelineStage {
  uint32_t first = 0, last = 0;  // layers [first, last)
  bool has_embedding = false, has_head = false;
  uint32_t kda = 0, mla = 0, moe = 0, dense = 0;  // sublayers
  // Sources of an attention residual, and how many sublayers mix so many; 0 sources: a plain norm.
  std::vector<std::pair<uint32_t, uint32_t>> inputs;
  uint32_t bank_rows = 0;  // of the attention residual that come in with the hidden state
};

std::vector<PipelineStage> cut_stages(const ModelGeometry& geometry, uint32_t stages);

}  // namespace runtime
