#include "runtime/sim/speculation.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/base/verify.hpp"
#include "runtime/sim/draft_draws.hpp"

namespace runtime {

Speculation::Speculation(const SpeculationConfig& config, const StepModel& model)
    : config_(config), model_(model), random_(config.seed, "speculation") {
  VERIFY(config.draft_tokens > 0 && config.draft_tokens <= kDraftTokens);
  VERIFY(config.acceptance.size() == config.draft_tokens);
}

void Speculation::advance(Block& block, memory::SequenceId sequence, uint32_t index) {
  if (index < block.first || index >= block.first + block.committed) begin(block, sequence, index);
  if (!config_.trim) return;
  ++rows_;
  survivals_.insert(survivals_.end(), block.survival.begin(),
                    block.survival.begin() + config_.draft_tokens);
}

void Speculation::begin(Block& block, memory::SequenceId sequence, uint32_t index) {
  const CounterRandom draws(random_.bits(sequence.value) + index, "");
  uint64_t drawn = 0;
  const auto uniform = [&] { return draws.uniform(drawn++); };
  block = {};
  block.first = index;
  uint32_t accepted = 0;
  bool alive = true;
  double survival = 1;
  for (uint32_t i = 0; i < config_.draft_tokens; ++i) {
    const double mean = config_.acceptance[i], spread = config_.spread;
    const bool certain = spread == 0 || mean <= 0 || mean >= 1;
    const double confidence =
        certain ? mean : draw_beta(spread * mean, spread * (1 - mean), uniform);
    alive = alive && uniform() < confidence;
    survival *= confidence;
    block.survival[i] = survival;
    const bool kept = block.width == i + 1 && (!config_.trim || survival >= least_);
    if (!kept) continue;
    ++block.width;
    accepted += alive ? 1 : 0;
  }
  block.committed = 1 + accepted;
  ++blocks_;
  committed_ += block.committed;
  verified_ += block.width;
}

// So many drafts, the likeliest first, that tokens per second are most.
void Speculation::end_step(uint64_t context) {
  if (rows_ == 0) return;
  std::sort(survivals_.begin(), survivals_.end(), std::greater<>());
  double tokens = rows_, best = tokens / step_us(rows_, rows_, context);
  least_ = 2;  // none
  for (size_t i = 0; i < survivals_.size(); ++i) {
    tokens += survivals_[i];
    const double rate = tokens / step_us(rows_, rows_ + static_cast<uint32_t>(i) + 1, context);
    if (rate <= best) continue;
    best = rate;
    least_ = survivals_[i];
  }
  rows_ = 0;
  survivals_.clear();
}

// At the middle of the power of two that the context is in: prices are looked up, as a server looks
// them up.
double Speculation::step_us(uint32_t rows, uint32_t tokens, uint64_t context) {
  const auto size = static_cast<int>(std::bit_width(context));
  const auto [found, is_new] = known_us_.try_emplace({rows, tokens, size}, 0);
  if (is_new) {
    StepShape shape;
    shape.decode_rows = rows;
    shape.decode_tokens = tokens;
    shape.decode_context = (uint64_t{3} << size) / 4;
    shape.verify_parts = rows;
    found->second = model_.step_us(shape);
  }
  return found->second;
}

}  // namespace runtime
