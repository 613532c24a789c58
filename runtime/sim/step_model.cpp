#include "runtime/sim/step_model.hpp"

#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "kernels/base/verify.hpp"
#include "kernels/sim/roofline_cost.hpp"
#include "kernels/sim/transfer_cost.hpp"
#include "runtime/sim/step_pricer.hpp"

namespace runtime {
namespace {

constexpr double kBf16 = 2;
constexpr double kDrafted = 7;  // tokens of a block

std::string gigabytes(double bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << bytes / 1e9 << " GB";
  return out.str();
}

void check_fits(const DeviceFile& device, const ParallelLayout& layout, const RankMemory& memory,
                const StepOptions& options) {
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1)) {
    throw std::invalid_argument("memory-fraction must be above 0 and at most 1");
  }
  if (memory.arena_bytes > 0) return;
  throw std::invalid_argument("layout " + name_of(layout) + " on " + device.name +
                              ": a rank's weights take " + gigabytes(memory.weight_bytes) +
                              ", and " + gigabytes(memory.weight_bytes + memory.arena_bytes) +
                              " are given; expected more ranks, or a larger memory fraction");
}

}  // namespace

StepModel::StepModel(const DeviceFile& device, const ModelGeometry& geometry,
                     const ParallelLayout& layout, const StepOptions& options)
    : device_(device.params),
      is_roofline_(device.is_roofline),
      geometry_(geometry),
      layout_(layout),
      options_(options),
      routing_(geometry.experts, geometry.top_k, device.params.expert_skew) {
  check_layout(layout, geometry);
  if (is_roofline_) {  // copies run at its one memory rate
    device_.stream_bytes_per_us = device_.host_bytes_per_us = device_.roofline.bytes_per_us;
  }
  if (is_roofline_ && layout.ranks() != 1) {
    throw std::invalid_argument("layout " + name_of(layout) + " on " + device.name +
                                ": a roofline device is modelled as one rank only (TP1)");
  }
  if (options.drafts && (is_roofline_ || layout.pipeline > 1)) {
    throw std::invalid_argument("layout " + name_of(layout) + " on " + device.name +
                                ": drafts are modelled without pipeline stages, and on devices "
                                "whose kernels are known");
  }
  stages_ = cut_stages(geometry_, layout.pipeline);
  decode_parts_.resize(stages_.size());
  memory_ = rank_memory(device_.memory_bytes, geometry_, layout_, options_);
  check_fits(device, layout, memory_, options_);
}

StepModel::Parts StepModel::price(const PipelineStage& stage, const StepPricer& pricer) const {
  Parts out;
  if (stage.has_embedding) out.before.add(pricer.embedding());
  for (const auto& [sources, count] : stage.inputs)
    out.before.add(pricer.sublayer_input(sources), count);
  if (stage.kda > 0) out.before.add(pricer.kda(), stage.kda);
  if (stage.moe > 0) out.mixture = pricer.mixture();
  if (stage.dense > 0) out.dense = pricer.dense();
  if (stage.has_head) out.head = pricer.head();
  return out;
}

const StepModel::Parts& StepModel::decode_parts(size_t index, uint32_t rows,
                                                const StepPricer& pricer) const {
  auto& known = decode_parts_[index];
  if (known.size() <= rows) known.resize(rows + 1);
  if (!known[rows]) known[rows] = price(stages_[index], pricer);
  return *known[rows];
}

// Prompts whole, running sequences as much as this step stands for.
StepBreakdown StepModel::stage(size_t index, const StepShape& shape) const {
  StepBreakdown all = whole_stage(index, shape);
  if (!options_.drafts || shape.decode_rows == 0) return all;
  all[CostClass::kFixed].us += draft_us(shape);
  StepShape prompts = shape;
  prompts.decode_rows = 0;
  prompts.decode_tokens = prompts.decode_context = 0;
  StepBreakdown without = whole_stage(index, prompts);
  const double part = shape.verify_parts / shape.decode_rows;
  all.scale(part);
  without.scale(1 - part);
  for (size_t i = 0; i < kCostClasses; ++i) all.parts[i].us += without.parts[i].us;
  return all;
}

StepBreakdown StepModel::whole_stage(size_t index, const StepShape& shape) const {
  VERIFY(index < stages_.size());
  StepBreakdown sum;
  if (shape.empty()) return sum;
  if (is_roofline_) return roofline(shape);
  const PipelineStage& stage = stages_[index];
  const StepPricer pricer(device_, geometry_, layout_, options_, routing_, shape);
  const bool decodes = shape.prefill_rows == 0 && shape.decode_tokens == shape.decode_rows;
  std::optional<Parts> own;
  if (!decodes) own = price(stage, pricer);
  const Parts& parts = own ? *own : decode_parts(index, shape.decode_rows, pricer);
  sum = parts.before;
  if (stage.mla > 0) sum.add(pricer.mla(), stage.mla);
  if (stage.moe > 0) sum.add(parts.mixture, stage.moe);
  if (stage.dense > 0) sum.add(parts.dense, stage.dense);
  if (stage.has_head) sum.add(parts.head);
  if (stages_.size() > 1 && shape.prefill_rows > 0) sum.scale(device_.pipeline_factor);
  return sum;
}

double StepModel::stage_us(size_t index, const StepShape& shape) const {
  return stage(index, shape).total_us();
}

double StepModel::handoff_us(size_t index, const StepShape& shape) const {
  VERIFY(index + 1 < stages_.size());
  const double vectors = 1.0 + stages_[index + 1].bank_rows;  // the running sum and the bank
  return kernels::handoff_us(
      device_, static_cast<double>(shape.tokens()) * vectors * geometry_.hidden * kBf16);
}

StepBreakdown StepModel::breakdown(const StepShape& shape) const {
  StepBreakdown sum;
  if (shape.empty()) return sum;
  for (size_t i = 0; i < stages_.size(); ++i) {
    sum.add(stage(i, shape));
    if (i + 1 == stages_.size()) break;
    sum[CostClass::kHandoff].us += handoff_us(i, shape);
    ++sum[CostClass::kHandoff].launches;
  }
  return sum;
}

double StepModel::step_us(const StepShape& shape) const { return breakdown(shape).total_us(); }

double StepModel::draft_us(const StepShape& shape) const {
  if (shape.decode_rows == 0 || is_roofline_) return 0;
  const double ranks = layout_.tensor;
  const double head_flops = kDrafted * shape.decode_rows * 2 * geometry_.hidden * geometry_.vocab;
  const double draft_flops = static_cast<double>(shape.decode_tokens) * 2 * device_.draft_params;
  return device_.draft_us + (draft_flops + head_flops) / (ranks * device_.gemm_flops_per_us) +
         kDrafted * device_.draft_sampler_us + device_.fold_us;
}

double StepModel::host_load_us(double tokens) const {
  return kernels::host_load_us(device_, tokens * memory_.kv_bytes_per_token());
}

}  // namespace runtime
