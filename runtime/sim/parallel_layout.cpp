#include "runtime/sim/parallel_layout.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "kernels/sim/transfer_cost.hpp"
#include "runtime/sim/model_geometry.hpp"

namespace runtime {
namespace {

struct Part {
  std::string_view name;
  uint32_t ParallelLayout::*size;
};
constexpr std::array<Part, 5> kParts = {{{"TP", &ParallelLayout::tensor},
                                         {"EP", &ParallelLayout::experts},
                                         {"PP", &ParallelLayout::pipeline},
                                         {"DCP", &ParallelLayout::context},
                                         {"DP", &ParallelLayout::data}}};
constexpr uint32_t kSizeMax = 1024;

[[noreturn]] void fail(const std::string& layout, const std::string& problem) {
  throw std::invalid_argument("layout " + layout + ": " + problem);
}

// Splits "PP8xTP2" into names and sizes.
class LayoutReader {
 public:
  explicit LayoutReader(const std::string& text) : text_(text) {}

  ParallelLayout read() {
    if (text_.empty()) fail("\"\"", "is empty; expected one such as TP8, TEP16, PP8xTP1, TP8xDCP8");
    while (at_ < text_.size()) {
      if (at_ > 0) {
        if (std::string_view("xX+-").find(text_[at_]) == std::string_view::npos) unexpected();
        ++at_;
      }
      read_part();
    }
    if (!given(0)) layout_.tensor = std::max({1u, layout_.experts, layout_.context});
    return layout_;
  }

 private:
  void read_part() {
    std::string name;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(text_[at_++])));
    }
    uint32_t size = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      size = size * 10 + static_cast<uint32_t>(text_[at_++] - '0');
      if (size > kSizeMax) fail(text_, "a size above " + std::to_string(kSizeMax));
    }
    if (size == 0) unexpected();
    if (name == "TEP") {
      set(0, size);
      set(1, size);
      return;
    }
    for (size_t i = 0; i < kParts.size(); ++i) {
      if (kParts[i].name == name) return set(i, size);
    }
    fail(text_, "\"" + name + "\" is unknown; known are TP, EP, TEP, PP, DCP and DP");
  }
  void set(size_t part, uint32_t size) {
    if (given(part)) fail(text_, std::string(kParts[part].name) + " is given twice");
    given_ |= 1u << part;
    layout_.*kParts[part].size = size;
  }
  bool given(size_t part) const { return (given_ >> part & 1u) != 0; }
  [[noreturn]] void unexpected() const {
    fail(text_, "cannot be read at character " + std::to_string(at_ + 1) +
                    "; expected parts such as TP8 joined by x");
  }

  const std::string& text_;
  size_t at_ = 0;
  ParallelLayout layout_;
  uint32_t given_ = 0;
};

void check_divides(const std::string& name, const char* what, uint32_t part, uint32_t whole,
                   const char* whole_name) {
  if (whole % part != 0) {
    fail(name, std::string(what) + std::to_string(part) + " does not divide " + whole_name + " " +
                   std::to_string(whole));
  }
}

}  // namespace

ParallelLayout parse_layout(const std::string& text) { return LayoutReader(text).read(); }

std::string name_of(const ParallelLayout& layout) {
  std::string name;
  if (layout.pipeline > 1) name += "PP" + std::to_string(layout.pipeline) + "x";
  const bool all = layout.experts == layout.tensor && layout.experts > 1;
  name += (all ? "TEP" : "TP") + std::to_string(layout.tensor);
  if (layout.experts > 1 && !all) name += "xEP" + std::to_string(layout.experts);
  if (layout.context > 1) name += "xDCP" + std::to_string(layout.context);
  if (layout.data > 1) name += "xDP" + std::to_string(layout.data);
  return name;
}

void check_layout(const ParallelLayout& layout, const ModelGeometry& geometry) {
  const std::string name = name_of(layout);
  if (!kernels::has_collective(layout.tensor)) {
    fail(name, "TP" + std::to_string(layout.tensor) +
                   " has no measured collectives; expected 1, 2, 4, 8, 16 or 32");
  }
  check_divides(name, "EP", layout.experts, layout.tensor, "TP");
  check_divides(name, "DP", layout.data, layout.tensor, "TP");
  check_divides(name, "DCP", layout.context, layout.attention_ranks(),
                "the ranks of one copy of the attention,");
  check_divides(name, "a copy's ranks, ", layout.attention_ranks(),
                static_cast<uint32_t>(geometry.kda_heads), "the model's KDA heads,");
  check_divides(name, "a copy's ranks, ", layout.attention_ranks(),
                static_cast<uint32_t>(geometry.mla_heads), "the model's MLA heads,");
  check_divides(name, "EP", layout.experts, static_cast<uint32_t>(geometry.experts),
                "the model's experts,");
  if (layout.pipeline > geometry.layer_count()) {
    fail(name,
         "more stages than the model's " + std::to_string(geometry.layer_count()) + " layers");
  }
  if (layout.pipeline > 1 && layout.context > 1) {
    fail(name,
         "pipeline stages and sharded KV positions are not modelled together; stages are for "
         "prefill, DCP for decode");
  }
  if (layout.pipeline > 1 && layout.data > 1) {
    fail(name, "pipeline stages and copies of the attention are not modelled together");
  }
  if (layout.data > 1 && layout.experts != layout.tensor) {
    fail(name, "copies of the attention are modelled only with whole experts on each rank: EP" +
                   std::to_string(layout.tensor));
  }
}

}  // namespace runtime
