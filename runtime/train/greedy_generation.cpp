#include "runtime/train/greedy_generation.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "runtime/aligned_floats.hpp"

namespace runtime {

namespace {

// The sequences that run together: each has a state slot and as many pages as it can need.
class Group {
 public:
  Group(Model& model, const GenerationLimits& limits, size_t longest_prompt)
      : model_(model),
        limits_(limits),
        geometry_(model.geometry()),
        pages_each_((longest_prompt + limits.tokens) / geometry_.page_tokens + 1),
        states_(geometry_.state_bytes / sizeof(float) * limits.sequences),
        pages_(geometry_.page_bytes / sizeof(float) * limits.sequences * pages_each_),
        logits_(model.vocab_size()) {
    memory_.state_base = reinterpret_cast<std::byte*>(states_.data());
    memory_.state_stride = geometry_.state_bytes;
    memory_.page_base = reinterpret_cast<std::byte*>(pages_.data());
    memory_.page_stride = geometry_.page_bytes;
    for (size_t i = 0; i < limits.sequences * pages_each_; ++i)
      page_table_.push_back(static_cast<uint32_t>(i));
  }

  void run(std::span<const std::vector<TokenId>> prompts,
           std::span<std::vector<TokenId>> answers) {
    std::fill_n(memory_.state_base, geometry_.state_bytes * prompts.size(), std::byte{0});
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < prompts.size(); ++i) {
      prefill(i, prompts[i]);
      if (!append(0, answers[i])) open.push_back(i);
    }
    while (!open.empty()) {
      decode(open, prompts, answers);
      std::vector<uint32_t> still;
      for (size_t row = 0; row < open.size(); ++row)
        if (!append(row, answers[open[row]])) still.push_back(open[row]);
      open = std::move(still);
    }
  }

 private:
  kernels::Segment segment(uint32_t sequence, size_t position, uint32_t row, size_t count) const {
    return {.row_begin = row,
            .row_count = static_cast<uint32_t>(count),
            .position = static_cast<uint32_t>(position),
            .slot = sequence,
            .page_begin = static_cast<uint32_t>(sequence * pages_each_),
            .write_from = static_cast<uint32_t>(position)};
  }

  void forward(std::span<const TokenId> tokens, std::span<const kernels::Segment> segments,
               std::span<const uint32_t> wanted) {
    ForwardBatch batch;
    batch.tokens = tokens;
    batch.view = {segments, page_table_, static_cast<uint32_t>(tokens.size())};
    batch.logit_rows = wanted;
    model_.forward(batch, memory_);
  }

  void prefill(uint32_t sequence, std::span<const TokenId> prompt) {
    for (size_t at = 0; at < prompt.size(); at += limits_.rows) {
      const auto piece = prompt.subspan(at, std::min<size_t>(limits_.rows, prompt.size() - at));
      const kernels::Segment one = segment(sequence, at, 0, piece.size());
      const auto last = static_cast<uint32_t>(piece.size() - 1);
      const bool wanted = at + piece.size() == prompt.size();
      forward(piece, {&one, 1}, {&last, wanted ? size_t{1} : size_t{0}});
    }
  }

  void decode(const std::vector<uint32_t>& open, std::span<const std::vector<TokenId>> prompts,
              std::span<const std::vector<TokenId>> answers) {
    std::vector<TokenId> tokens;
    std::vector<kernels::Segment> segments;
    std::vector<uint32_t> wanted;
    for (const uint32_t i : open) {
      const auto row = static_cast<uint32_t>(tokens.size());
      segments.push_back(segment(i, prompts[i].size() + answers[i].size() - 1, row, 1));
      tokens.push_back(answers[i].back());
      wanted.push_back(row);
    }
    forward(tokens, segments, wanted);
  }

  // The likeliest token of a row of the last forward, ties to the lower id. True: the answer ends.
  bool append(size_t row, std::vector<TokenId>& answer) {
    model_.logits(row, 1, logits_.data());
    const auto best = std::max_element(logits_.begin(), logits_.end());
    answer.push_back(static_cast<TokenId>(best - logits_.begin()));
    return answer.size() >= limits_.tokens ||
           std::find(limits_.end_ids.begin(), limits_.end_ids.end(), answer.back()) !=
               limits_.end_ids.end();
  }

  Model& model_;
  const GenerationLimits& limits_;
  CacheGeometry geometry_;
  size_t pages_each_;
  AlignedFloats states_, pages_;
  CacheMemory memory_;
  std::vector<uint32_t> page_table_;
  std::vector<float> logits_;
};

}  // namespace

std::vector<std::vector<TokenId>> generate_greedy(Model& model,
                                                  const std::vector<std::vector<TokenId>>& prompts,
                                                  const GenerationLimits& limits,
                                                  const std::function<void(size_t)>& done) {
  VERIFY(limits.sequences > 0 && limits.sequences <= limits.rows && limits.tokens > 0);
  std::vector<std::vector<TokenId>> answers(prompts.size());
  size_t longest = 0;
  for (const auto& prompt : prompts) {
    VERIFY(!prompt.empty());
    longest = std::max(longest, prompt.size());
  }
  Group group(model, limits, longest);
  for (size_t at = 0; at < prompts.size(); at += limits.sequences) {
    const size_t count = std::min<size_t>(limits.sequences, prompts.size() - at);
    group.run(std::span(prompts).subspan(at, count), std::span(answers).subspan(at, count));
    if (done) done(at + count);
  }
  return answers;
}

}  // namespace runtime
