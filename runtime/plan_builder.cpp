#include "runtime/plan_builder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

// Those that waited longest for a row come first; unique, so every run picks the same.
bool waited_longer(const Sequence* a, const Sequence* b) {
  return a->now.last_step != b->now.last_step ? a->now.last_step < b->now.last_step
                                              : goes_before(*a, *b);
}

void move_head(PlanHead& head, StepPlan& plan) {
  for (const memory::MemoryCommand& command : head.memory) {
    std::visit([&](const auto& value) { plan.commands.emplace_back(value); }, command);
  }
  head.memory.clear();
  if (head.closes.empty()) return;
  plan.commands.push_back(Close{std::move(head.closes)});
  head.closes.clear();
}

}  // namespace

PlanBuilder::PlanBuilder(const SchedulerConfig& config, const CheckpointPlanner& planner)
    : chunk_tokens_(config.chunk_tokens),
      page_tokens_(config.page_tokens),
      prefix_cache_(config.prefix_cache),
      planner_(planner) {
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
    const uint32_t count = std::min(budget, sequence->now.course.tokens - sequence->now.consumed);
    picks_.push_back({sequence, count});
    budget -= count;
  }
}

void PlanBuilder::start(Sequence& sequence, PlanRow& row, PlannedStep& planned) {
  Sequence::Admission& now = sequence.now;
  now.started = true;
  if (now.checkpoint) {
    starts_.push_back(memory::Restore{*now.checkpoint, now.working});
    planned.restored.push_back({sequence.id, now.ticket});
    now.checkpoint.reset();
  } else if (!now.staged) {
    starts_.push_back(memory::Clear{now.working});
  }
  row.start = SequenceStart{sequence.sampling,
                            sequence.tokens(),
                            sequence.prompt_tokens,
                            sequence.prompt_logprobs && !sequence.prompt_sent,
                            now.working,
                            now.shared};
}

// A spare slot takes what is worth saving. A rolling snapshot without one takes the place of the
// last: whoever has but one slot loses its latest checkpoint only if it ends within this plan.
void PlanBuilder::take_snapshots(Sequence& sequence, PlanRow& row, PlannedStep& planned) {
  Sequence::Admission& now = sequence.now;
  std::vector<PlannedStep::Taken>& taken = planned.rows.back().taken;
  planner_.wanted(now.course, row.position, row.position + row.count, wanted_);
  for (const CheckpointPlanner::Wanted& wanted : wanted_) {
    if (now.spare.empty() && wanted.rolling && now.kept) {
      now.spare.push_back(now.kept->slot);
      now.kept.reset();
    }
    if (now.spare.size() <= wanted.yields) {
      ++planned.skipped;
      continue;
    }
    taken.push_back({{wanted.position, now.spare.back()}, wanted.rolling});
    now.spare.pop_back();
    ++now.under_way;
    now.course.planted = std::max(now.course.planted, wanted.position);
  }
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return a.snapshot.position < b.snapshot.position; });
  for (const PlannedStep::Taken& each : taken) row.snapshots.push_back(each.snapshot);
}

PlanRow PlanBuilder::make_row(Sequence& sequence, uint32_t count, PlannedStep& planned) {
  Sequence::Admission& now = sequence.now;
  PlanRow row;
  row.sequence = sequence.id;
  row.position = now.consumed;
  row.count = count;
  row.new_pages = std::move(now.fresh_pages);
  now.fresh_pages.clear();
  if (!now.started) start(sequence, row, planned);
  now.consumed += count;
  now.last_step = last_step_;
  // No token is sampled after the last chunk when only the prompt was to be read.
  row.sample = now.consumed >= now.course.tokens && sequence.max_tokens > 0;
  VERIFY(now.consumed <= uint64_t{now.pages} * page_tokens_);
  const auto first_page = now.pages - static_cast<uint32_t>(row.new_pages.size());
  planned.rows.push_back({row.sequence, now.ticket, row.position, row.count, row.sample,
                          now.working, first_page, {}});
  if (prefix_cache_) take_snapshots(sequence, row, planned);
  return row;
}

std::optional<StepPlan> PlanBuilder::build(std::span<Sequence* const> running, PlanHead& head,
                                           PlannedStep& planned) {
  pick_rows(running);
  if (picks_.empty()) return std::nullopt;
  StepPlan plan;
  plan.commands.reserve(head.memory.size() + 2 + picks_.size());
  move_head(head, plan);
  starts_.clear();
  Forward forward;
  forward.step = ++last_step_;
  forward.rows.reserve(picks_.size());
  planned.step = forward.step;
  planned.page_tokens = page_tokens_;
  planned.rows.clear();
  planned.restored.clear();
  planned.skipped = 0;
  for (const Pick& pick : picks_)
    forward.rows.push_back(make_row(*pick.sequence, pick.count, planned));
  std::move(starts_.begin(), starts_.end(), std::back_inserter(plan.commands));
  plan.commands.emplace_back(std::move(forward));
  return plan;
}

StepPlan PlanBuilder::head_only(PlanHead& head) {
  StepPlan plan;
  move_head(head, plan);
  return plan;
}

}  // namespace runtime
