#include "runtime/plan_builder.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

// Those that waited longest for a row come first; unique, so every run picks the same.
bool waited_longer(const Sequence* a, const Sequence* b) {
  return a->now.last_step != b->now.last_step ? a->now.last_step < b->now.last_step
                                              : goes_before(*a, *b);
}

void move_closes(std::vector<SequenceId>& closes, StepPlan& plan) {
  if (closes.empty()) return;
  plan.commands.push_back(Close{std::move(closes)});
  closes.clear();
}

}  // namespace

PlanBuilder::PlanBuilder(const SchedulerConfig& config)
    : chunk_tokens_(config.chunk_tokens), page_tokens_(config.page_tokens) {
  VERIFY(chunk_tokens_ > 0);
}

void PlanBuilder::pick_rows(std::span<Sequence* const> running) {
  picks_.clear();
  decoding_.clear();
  bool prefill_waits = false;
  for (Sequence* sequence : running) {
    const Sequence::Admission& now = sequence->now;
    if (sequence->prefilling()) {
      prefill_waits = true;
    } else if (now.consumed < sequence->limit_positions() &&
               now.consumed < uint64_t{now.pages} * page_tokens_) {
      decoding_.push_back(sequence);  // else: all its tokens are planned, or it sits out until its
                                      // next page is granted
    }
  }
  // More decode rows than a step holds: they take turns, and leave one token row so that prefill
  // moves on.
  const uint32_t decode_budget =
      prefill_waits && chunk_tokens_ > 1 ? chunk_tokens_ - 1 : chunk_tokens_;
  if (decoding_.size() > decode_budget) {
    std::sort(decoding_.begin(), decoding_.end(), waited_longer);
    decoding_.resize(decode_budget);
  }
  for (Sequence* sequence : decoding_) picks_.push_back({sequence, 1});
  uint32_t budget = chunk_tokens_ - static_cast<uint32_t>(decoding_.size());
  for (Sequence* sequence : running) {
    if (budget == 0) break;
    if (!sequence->prefilling()) continue;
    const uint32_t count = std::min(budget, sequence->now.start_tokens - sequence->now.consumed);
    picks_.push_back({sequence, count});
    budget -= count;
  }
}

PlanRow PlanBuilder::make_row(Sequence& sequence, uint32_t count, StepPlan& plan) {
  Sequence::Admission& now = sequence.now;
  for (const memory::Bind& bind : now.binds) plan.commands.emplace_back(bind);
  now.binds.clear();
  PlanRow row;
  row.sequence = sequence.id;
  row.position = now.consumed;
  row.count = count;
  row.new_pages = std::move(now.fresh_pages);
  now.fresh_pages.clear();
  if (!now.started) {
    now.started = true;
    clears_.push_back({now.slot});
    row.start = SequenceStart{sequence.sampling, sequence.tokens(), sequence.prompt_tokens,
                              sequence.prompt_logprobs && !sequence.prompt_sent, now.slot};
  }
  now.consumed += count;
  now.last_step = last_step_;
  // No token is sampled after the last chunk when only the prompt was to be read.
  row.sample = now.consumed >= now.start_tokens && sequence.max_tokens > 0;
  VERIFY(now.consumed <= uint64_t{now.pages} * page_tokens_);
  return row;
}

std::optional<StepPlan> PlanBuilder::build(std::span<Sequence* const> running,
                                           std::vector<SequenceId>& closes, PlannedStep& planned) {
  pick_rows(running);
  if (picks_.empty()) return std::nullopt;
  StepPlan plan;
  size_t binds = 0;
  for (const Pick& pick : picks_) binds += pick.sequence->now.binds.size();
  plan.commands.reserve(binds + 2 + picks_.size());
  move_closes(closes, plan);
  clears_.clear();
  Forward forward;
  forward.step = ++last_step_;
  forward.rows.reserve(picks_.size());
  planned.step = forward.step;
  planned.rows.clear();
  for (const Pick& pick : picks_) {
    const PlanRow& row = forward.rows.emplace_back(make_row(*pick.sequence, pick.count, plan));
    planned.rows.push_back(
        {row.sequence, pick.sequence->epoch, row.position, row.count, row.sample});
  }
  for (const memory::Clear& clear : clears_) plan.commands.emplace_back(clear);
  plan.commands.emplace_back(std::move(forward));
  return plan;
}

StepPlan PlanBuilder::close_only(std::vector<SequenceId>& closes) {
  StepPlan plan;
  move_closes(closes, plan);
  return plan;
}

}  // namespace runtime
