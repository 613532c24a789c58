// How the ranks of one server share a model: tensor parallel attention, experts by width or by
// count, stages of layers, positions of the KV cache, copies of the attention. A combination that
// the cost model has no formula for is refused.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

struct ModelGeometry;

struct ParallelLayout {
  uint32_t tensor = 1;    // ranks that share each layer
  uint32_t experts = 1;   // parts that the routed experts are dealt to; tensor / experts ranks
                          // slice each expert
  uint32_t pipeline = 1;  // stages of consecutive layers
  uint32_t context = 1;   // a rank owns every context-th KV position (decode; within a copy)
  uint32_t data = 1;      // copies of the attention, each with its own sequences

  uint32_t ranks() const { return tensor * pipeline; }
  uint32_t attention_ranks() const { return tensor / data; }  // that share one copy's heads
  uint32_t expert_slices() const { return tensor / experts; }
  bool operator==(const ParallelLayout&) const = default;
};

// "TP8", "TEP16" (TP16 and EP16), "PP8xTP1", "TP8xDCP8", "TP16xEP16xDP2". Parts may be joined by
// x, + or -; DCPn or EPn alone imply TPn. Throws std::invalid_argument that says what is wrong and
// what would be right.
ParallelLayout parse_layout(const std::string& text);
std::string name_of(const ParallelLayout& layout);

// Throws std::invalid_argument where the parts do not fit one another or the model.
void check_layout(const ParallelLayout& layout, const ModelGeometry& geometry);

}  // namespace runtime
