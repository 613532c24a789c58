#include "runtime/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/plan_moves.hpp"
#include "runtime/retraction.hpp"
#include "runtime/scheduler_impl.hpp"

namespace runtime {

Scheduler::Impl::Impl(const SchedulerConfig& settings)
    : config(settings),
      admission(settings),
      builder(settings, admission.planner()),
      moves(settings.move_ring) {
  VERIFY(config.plans_in_flight > 0);
}

void Scheduler::Impl::absorb(SchedulerEvent&& event) {
  std::visit([&](auto& value) { on(std::move(value)); }, event);
}

void Scheduler::Impl::plan(uint64_t now_us) {
  expire(now_us);
  send_plans();
  grow();  // before admit(): a retracted sequence must not ask ahead of the one it made room for
  admit();
}

void Scheduler::Impl::on(Submit&& event) {
  ++counters.requests_total;
  // One bad sequence refuses the request: the client gets one answer.
  std::optional<kernels::Error> refusal;
  for (const NewSequence& sequence : event.sequences) {
    if (!refusal) refusal = admission.refuse(sequence);
  }
  if (refusal) {
    for (const NewSequence& sequence : event.sequences) {
      SequenceFinished finished;
      finished.request = event.request;
      finished.sequence = sequence.sequence;
      finished.reason = FinishReason::kError;
      finished.error = refusal;
      finished.prompt_tokens = static_cast<uint32_t>(sequence.prompt.size());
      finished.last = &sequence == &event.sequences.back();
      tell(std::move(finished));
    }
    return;
  }
  if (event.sequences.empty()) return;
  std::vector<SequenceId> ids;
  for (NewSequence& from : event.sequences) {
    const auto [place, is_new] = sequences.try_emplace(from.sequence);
    VERIFY(is_new);
    Sequence& sequence = place->second;
    sequence.request = event.request;
    sequence.id = from.sequence;
    sequence.priority = event.priority;
    sequence.arrival = ++arrivals;
    sequence.prompt_tokens = static_cast<uint32_t>(from.prompt.size());
    sequence.max_tokens = from.max_tokens;
    sequence.sampling = std::move(from.sampling);
    sequence.prompt_logprobs = from.prompt_logprobs;
    sequence.name_space = from.name_space;
    sequence.prompt = std::move(from.prompt);
    ids.push_back(sequence.id);
    queue.push(sequence);
  }
  requests.open(event.request, std::move(ids), event.deadline_us);
}

void Scheduler::Impl::on(StopSequence&& event) {
  Sequence* sequence = find(event.sequence);
  if (!sequence) return;
  const uint32_t counted = std::min(event.output_tokens, sequence->output_tokens());
  donate_kept(*sequence, sequence->prompt_tokens + counted);
  finish(*sequence, {FinishReason::kStop, {}, {}});
}

void Scheduler::Impl::on(memory::CacheReply&& reply) {
  for (const memory::MemoryCommand& command : reply.commands)
    counters.moves_total += std::holds_alternative<memory::Move>(command) ? 1 : 0;
  head.memory.insert(head.memory.end(), reply.commands.begin(), reply.commands.end());
  head.moves.insert(head.moves.end(), reply.moves.begin(), reply.moves.end());
  if (head.memory.empty()) log_head();
  for (memory::CacheAnswer& answer : reply.answers)
    std::visit([&](auto& value) { on_answer(std::move(value)); }, answer);
}

void Scheduler::Impl::on_answer(memory::Opened&& opened) {
  Sequence* sequence = find(opened.sequence, opened.ticket);
  if (!sequence) return;  // its Drop is already behind the Open
  admission.opened(*sequence, std::move(opened));
  const Sequence::Admission& now = sequence->now;
  if (now.staged && sequence->computed > 0) ++counters.host_resumed_total;
  if (!sequence->cached_tokens) {
    sequence->cached_tokens = now.consumed;
    counters.looked_up_tokens_total += sequence->prompt_tokens;
    counters.state_hit_tokens_total += now.consumed;
    counters.kv_hit_tokens_total += now.shared;
  }
  const uint32_t before = std::max(now.shared, sequence->computed);
  counters.recomputed_tokens_total += before - std::min(before, now.consumed);
  const auto place =
      std::upper_bound(running.begin(), running.end(), sequence,
                       [](const Sequence* a, const Sequence* b) { return goes_before(*a, *b); });
  running.insert(place, sequence);
}

void Scheduler::Impl::on_answer(memory::Grown&& grown) {
  if (Sequence* sequence = find(grown.sequence, grown.ticket))
    admission.grown(*sequence, std::move(grown));
}

void Scheduler::Impl::on_answer(memory::Refilled&& refilled) {
  Sequence* sequence = find(refilled.sequence, refilled.ticket);
  if (!sequence) return;
  VERIFY(!sequence->now.donations.empty());
  sequence->now.donations.erase(sequence->now.donations.begin());
  if (refilled.slot) sequence->now.spare.push_back(*refilled.slot);
}

void Scheduler::Impl::on_answer(memory::Refused&& refused) {
  Sequence* sequence = find(refused.sequence, refused.ticket);
  if (!sequence) return;
  const bool opening = sequence->phase == Phase::kOpening;
  const bool current = admission.refused(*sequence);
  if (opening) queue.push(*sequence);
  if (!current) return;  // something was given back since: it asks again, in this same event
  const bool alone = admission.admitted() == (opening ? 0u : 1u);
  if (!alone) {
    if (opening) return;  // until something is given back
    if (Sequence* victim = choose_victim(running)) retract(*victim);
    return;
  }
  // Nobody else holds a block: what is in the way are its own snapshot slots, if it has any.
  admission.unblock();
  if (!opening && !sequence->lean) {
    sequence->lean = true;
    retract(*sequence);
    return;
  }
  // What is pinned by hand leaves less than SchedulerConfig::pages_max says. The next in the queue
  // finds out for itself.
  kernels::Error error{kernels::ErrorCode::kFull,
                       "the memory has no room for this request beside what is pinned in it",
                       {}};
  finish(*sequence, {FinishReason::kError, {}, std::move(error)});
}

void Scheduler::Impl::log_head() {
  for (memory::MoveRecord& record : head.moves) {
    record.step = last_step;
    moves.append(record);
  }
  head.moves.clear();
}

void Scheduler::Impl::send_plans() {
  while (in_flight.size() < config.plans_in_flight) {
    PlannedStep planned;
    if (!spare.empty()) {
      planned = std::move(spare.back());
      spare.pop_back();
    }
    auto plan = builder.build(running, head, planned);
    if (!plan) {
      spare.push_back(std::move(planned));
      break;
    }
    log_head();
    last_step = planned.step;
    log_moves(*plan, planned, moves);
    send(std::move(*plan));
    for (const memory::Restored& restored : planned.restored) send(memory::CacheRequest{restored});
    counters.snapshots_skipped_total += planned.skipped;
    in_flight.push_back(std::move(planned));
  }
  // No result will come to carry it away with a later plan.
  if (!in_flight.empty() || head.empty()) return;
  log_head();
  send(PlanBuilder::head_only(head));
}

void Scheduler::Impl::grow() {
  for (Sequence* sequence : running) {
    if (auto more = admission.grow(*sequence)) send(memory::CacheRequest{*more});
  }
}

void Scheduler::Impl::admit() {
  while (!queue.empty() && admission.may_open()) {
    Sequence& first = queue.front();
    queue.erase(first);
    send(memory::CacheRequest{admission.open(first)});
  }
}

void Scheduler::Impl::check() const {
  VERIFY(in_flight.size() <= config.plans_in_flight);
  queue.check();
  uint32_t opening = 0;
  for (const auto& [id, sequence] : sequences) {
    VERIFY(sequence.id == id);
    VERIFY(requests.contains(sequence.request));
    VERIFY((sequence.phase == Phase::kQueued) == (sequence.now.ticket == 0));
    if (sequence.phase == Phase::kQueued) VERIFY(sequence.asked_pages == 0);
    if (sequence.phase == Phase::kOpening) ++opening;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const Sequence& sequence = *running[i];
    VERIFY(sequence.phase == Phase::kRunning);
    VERIFY(i == 0 || goes_before(*running[i - 1], sequence));
    VERIFY(sequence.now.consumed <= sequence.limit_positions());
    VERIFY(admission.room_for(sequence, sequence.now.consumed));
    VERIFY(sequence.output_tokens() < std::max(sequence.max_tokens, 1u));
    if (!config.prefix_cache) VERIFY(sequence.snapshot_slots() == 0);
  }
  VERIFY(queue.size() + opening + running.size() == sequences.size());
  VERIFY(admission.admitted() == opening + running.size());
  VERIFY(admission.admitted() <= config.max_running);
  requests.check(sequences.size());
}

Scheduler::Scheduler(const SchedulerConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Scheduler::~Scheduler() = default;

void Scheduler::absorb(SchedulerEvent event, std::vector<SchedulerOutput>& out) {
  impl_->out = &out;
  impl_->absorb(std::move(event));
  impl_->out = nullptr;
}

void Scheduler::plan(uint64_t now_us, std::vector<SchedulerOutput>& out) {
  impl_->out = &out;
  impl_->plan(now_us);
  impl_->out = nullptr;
}

void Scheduler::handle(SchedulerEvent event, uint64_t now_us, std::vector<SchedulerOutput>& out) {
  absorb(std::move(event), out);
  plan(now_us, out);
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = impl_->counters;
  stats.running = static_cast<uint32_t>(impl_->running.size());
  stats.queued = static_cast<uint32_t>(impl_->sequences.size() - impl_->running.size());
  return stats;
}

std::optional<uint64_t> Scheduler::next_deadline_us() const {
  return impl_->requests.next_deadline_us();
}

bool Scheduler::idle() const {
  return impl_->sequences.empty() && impl_->in_flight.empty() && impl_->head.empty();
}

void Scheduler::check() const { impl_->check(); }
memory::MoveLog& Scheduler::moves() { return impl_->moves; }
const memory::MoveLog& Scheduler::moves() const { return impl_->moves; }

}  // namespace runtime
