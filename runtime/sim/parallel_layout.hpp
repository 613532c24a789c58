// How the ranks of one server share the model: tensor parallel attention, experts by width or by
// count, pipeline stages, positions of the KV cache. Combinations that the cost model has no
// formula for are refused.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

struct ParallelLayout {
  uint32_t tensor = 1;    // ranks that share each layer
  uint32_t experts = 1;   // parts that the routed experts are dealt to; the rest of `tensor` slices
                          // each expert
  uint32_t pipeline = 1;  // stages of consecutive layers
  uint32_t context = 1;   // ranks that own every context-th KV position (within `tensor`)
  uint32_t data = 1;      // copies of the attention, each with its own requests (within `tensor`)

  uint32_t ranks() const { return tensor * pipeline; }
  uint32_t attention_ranks() const { return tensor / data; }   // that share one head set
  uint32_t expert_slices() const { return tensor / experts; }  // that share one expert
  bool operator==(const ParallelLayout&) const = default;
};

// "TP8", "TEP16" (TP16 with experts dealt to 16), "PP8xTP1", "TP8-DCP8", "TP16-EP16-DP2".
// Throws std::invalid_argument that says what is wrong and what would be right.
ParallelLayout parse_layout(const std::string& text);
std::string name_of(const ParallelLayout& layout);

}  // namespace runtime
