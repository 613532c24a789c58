// The tokens of a trace's prompts, made up so that two prompts share exactly the blocks that they
// share in the trace. Any request's can be had at any time, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/trace/trace.hpp"
#include "runtime/counter_random.hpp"
#include "runtime/request.hpp"

namespace net {

struct PromptOptions {
  uint32_t block_tokens = 0;  // 0: as in the trace; smaller ones keep the tree at a smaller scale
  // What counts are blocks: a last one that is partial in the trace is filled up, and an answer
  // reaches past the next boundary, since pages come to the tree with a checkpoint behind them.
  bool whole_blocks = false;
  uint32_t vocabulary = 1u << 31;  // ids are below it
  uint64_t seed = 1;               // other seeds, other tokens
};

class PromptSource {
 public:
  // `trace` must outlive it. Throws std::invalid_argument for a block size that is larger than the
  // trace's.
  PromptSource(const Trace& trace, const PromptOptions& options);

  uint32_t block_tokens() const { return block_tokens_; }
  uint32_t prompt_tokens(uint32_t request) const;  // at least 1
  uint32_t output_tokens(uint32_t request) const;  // at least 1
  std::vector<runtime::TokenId> prompt(uint32_t request) const;
  // Token `index` of the request's answer, which no prompt goes on with.
  runtime::TokenId answer(uint32_t request, uint32_t index) const;

 private:
  uint32_t scaled(uint32_t tokens) const;
  // What the tokens of a block, tail or answer are made from.
  uint64_t stretch_of(uint32_t request, uint32_t index) const;
  void fill(uint64_t stretch, std::span<runtime::TokenId> out) const;

  const Trace& trace_;
  PromptOptions options_;
  runtime::CounterRandom stretches_;
  uint32_t block_tokens_;
};

}  // namespace net
