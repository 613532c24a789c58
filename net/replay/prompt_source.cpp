#include "net/replay/prompt_source.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace net {
namespace {

// Stretches of made-up tokens; `index` counts a prompt's blocks.
constexpr uint32_t kTail = UINT32_MAX, kAnswer = UINT32_MAX - 1;

constexpr uint32_t kStep = 0x9e3779b1u, kMix = 0x85ebca6bu;

runtime::TokenId id_below(uint32_t vocabulary, uint32_t mixed) {
  return static_cast<runtime::TokenId>((uint64_t{mixed} * vocabulary) >> 32);
}

// Neighbouring tokens carry both halves of the stretch, so that two stretches never agree for long.
runtime::TokenId token(uint64_t stretch, uint32_t index, uint32_t vocabulary) {
  const auto half = static_cast<uint32_t>((index & 1u) != 0 ? stretch >> 32 : stretch);
  return id_below(vocabulary, (half + index * kStep) * kMix);
}

}  // namespace

PromptSource::PromptSource(const Trace& trace, const PromptOptions& options)
    : trace_(trace),
      options_(options),
      stretches_(options.seed, "prompts"),
      block_tokens_(trace.block_tokens) {
  if (options.block_tokens == 0) return;
  if (options.block_tokens > trace.block_tokens) {
    throw std::invalid_argument("block tokens: " + std::to_string(options.block_tokens) +
                                " are more than the trace's " + std::to_string(trace.block_tokens) +
                                "; blocks can be made smaller, not larger");
  }
  block_tokens_ = options.block_tokens;
}

uint32_t PromptSource::scaled(uint32_t tokens) const {
  if (trace_.block_tokens == block_tokens_) return tokens;
  return static_cast<uint32_t>(uint64_t{tokens} * block_tokens_ / trace_.block_tokens);
}

uint32_t PromptSource::prompt_tokens(uint32_t request) const {
  const TraceRequest& of = trace_.requests[request];
  const uint64_t in_blocks = uint64_t{of.blocks} * trace_.block_tokens;
  const auto blocks = static_cast<uint32_t>(uint64_t{of.blocks} * block_tokens_);
  const uint32_t tail =
      of.input_tokens > in_blocks ? scaled(static_cast<uint32_t>(of.input_tokens - in_blocks)) : 0;
  if (options_.whole_blocks) return std::max(blocks + tail, 1u);
  return std::max(of.input_tokens >= in_blocks ? blocks + tail : scaled(of.input_tokens), 1u);
}

uint32_t PromptSource::output_tokens(uint32_t request) const {
  return std::max(scaled(trace_.requests[request].output_tokens),
                  options_.whole_blocks ? block_tokens_ + 1 : 1);
}

uint64_t PromptSource::stretch_of(uint32_t request, uint32_t index) const {
  return stretches_.bits(uint64_t{request} << 32 | index);
}

void PromptSource::fill(uint64_t stretch, std::span<runtime::TokenId> out) const {
  // token(stretch, i) for each i, with sums instead of products: days of traffic are made of these.
  uint32_t even = static_cast<uint32_t>(stretch) * kMix;
  uint32_t odd = (static_cast<uint32_t>(stretch >> 32) + kStep) * kMix;
  size_t i = 0;
  for (; i + 1 < out.size(); i += 2) {
    out[i] = id_below(options_.vocabulary, even);
    out[i + 1] = id_below(options_.vocabulary, odd);
    even += 2 * kStep * kMix;
    odd += 2 * kStep * kMix;
  }
  if (i < out.size()) out[i] = id_below(options_.vocabulary, even);
}

std::vector<runtime::TokenId> PromptSource::prompt(uint32_t request) const {
  std::vector<runtime::TokenId> out(prompt_tokens(request));
  std::span<runtime::TokenId> left(out);
  for (const BlockRun& run : block_runs(trace_.requests, request)) {
    for (uint32_t i = run.first; i < run.first + run.count; ++i) {
      const size_t count = std::min<size_t>(block_tokens_, left.size());
      fill(stretch_of(run.owner, i), left.first(count));
      left = left.subspan(count);
    }
  }
  fill(stretch_of(request, kTail), left);
  return out;
}

runtime::TokenId PromptSource::answer(uint32_t request, uint32_t index) const {
  return token(stretch_of(request, kAnswer), index, options_.vocabulary);
}

}  // namespace net
