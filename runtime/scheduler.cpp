#include "runtime/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/retraction.hpp"
#include "runtime/scheduler_impl.hpp"

namespace runtime {

Scheduler::Impl::Impl(const SchedulerConfig& settings)
    : config(settings), admission(settings), builder(settings) {
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
      SequenceFinished finished{
          event.request, sequence.sequence, FinishReason::kError, {}, refusal, 0, 0, 0};
      finished.prompt_tokens = static_cast<uint32_t>(sequence.prompt.size());
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
    sequence.prompt = std::move(from.prompt);
    ids.push_back(sequence.id);
    queue.push(sequence);
  }
  requests.open(event.request, std::move(ids), event.deadline_us);
}

void Scheduler::Impl::on(StopSequence&& event) {
  if (Sequence* sequence = find(event.sequence)) finish(*sequence, {FinishReason::kStop, {}, {}});
}

void Scheduler::Impl::on(memory::CacheAnswer&& answer) {
  std::visit([&](auto& value) { on_answer(std::move(value)); }, answer);
}

void Scheduler::Impl::on_answer(memory::Grant&& grant) {
  Sequence* sequence = find(grant.sequence);
  if (!sequence || sequence->ticket != grant.ticket)
    return;  // its Release is already behind the Reserve
  const bool starts = sequence->phase == Phase::kReserving;
  admission.granted(*sequence, std::move(grant));
  if (!starts) return;
  const auto place =
      std::upper_bound(running.begin(), running.end(), sequence,
                       [](const Sequence* a, const Sequence* b) { return goes_before(*a, *b); });
  running.insert(place, sequence);
}

void Scheduler::Impl::on_answer(memory::Refusal&& refusal) {
  Sequence* sequence = find(refusal.sequence);
  if (!sequence || sequence->ticket != refusal.ticket) return;
  const bool current = admission.refused(*sequence);
  if (sequence->phase == Phase::kQueued) queue.push(*sequence);
  if (!current) return;  // something was released since: it asks again, in this same event
  const bool alone = running.empty() || (running.size() == 1 && running.front() == sequence);
  if (alone && admission.claimed_slots() == running.size()) {
    // Nobody else holds a block, so waiting cannot help: the pool is smaller than
    // SchedulerConfig::capacity says.
    admission.unblock();  // the next in the queue finds out for itself
    kernels::Error error{kernels::ErrorCode::kInternal,
                         "the cache manager refused the only running sequence a page",
                         {}};
    finish(*sequence, {FinishReason::kError, {}, std::move(error)});
  } else if (sequence->phase == Phase::kRunning) {
    if (Sequence* victim = choose_victim(running)) retract(*victim);
  }
}

void Scheduler::Impl::send_plans() {
  while (in_flight.size() < config.plans_in_flight) {
    PlannedStep planned;
    if (!spare.empty()) {
      planned = std::move(spare.back());
      spare.pop_back();
    }
    auto plan = builder.build(running, closes, planned);
    if (!plan) {
      spare.push_back(std::move(planned));
      break;
    }
    in_flight.push_back(std::move(planned));
    send(std::move(*plan));
  }
  // No result will come to carry them away with a later plan.
  if (in_flight.empty() && !closes.empty()) send(PlanBuilder::close_only(closes));
}

void Scheduler::Impl::grow() {
  for (Sequence* sequence : running) {
    if (auto reserve = admission.reserve_growth(*sequence)) send(memory::CacheRequest{*reserve});
  }
}

void Scheduler::Impl::admit() {
  while (!queue.empty() && admission.may_reserve(queue.front(), running)) {
    Sequence& head = queue.front();
    queue.erase(head);
    send(memory::CacheRequest{admission.reserve_first(head)});
  }
}

void Scheduler::Impl::check() const {
  VERIFY(in_flight.size() <= config.plans_in_flight);
  queue.check();
  uint32_t reserving = 0, slots = 0;
  uint64_t pages = 0;
  for (const auto& [id, sequence] : sequences) {
    VERIFY(sequence.id == id);
    VERIFY(requests.contains(sequence.request));
    VERIFY((sequence.ticket == 0) == (sequence.asked_pages == 0));
    if (sequence.phase == Phase::kReserving) ++reserving;
    if (sequence.phase != Phase::kQueued) ++slots;
    pages += sequence.now.pages + sequence.asked_pages;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const Sequence& sequence = *running[i];
    VERIFY(sequence.phase == Phase::kRunning);
    VERIFY(i == 0 || goes_before(*running[i - 1], sequence));
    VERIFY(sequence.now.consumed <= sequence.limit_positions());
    VERIFY(admission.room_for(sequence, sequence.now.consumed));
    VERIFY(sequence.output_tokens() < std::max(sequence.max_tokens, 1u));
  }
  VERIFY(queue.size() + reserving + running.size() == sequences.size());
  VERIFY(admission.claimed_slots() == slots);
  VERIFY(admission.claimed_pages() == pages);
  VERIFY(slots <= config.max_running);
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
  return impl_->sequences.empty() && impl_->in_flight.empty() && impl_->closes.empty();
}

void Scheduler::check() const { impl_->check(); }

}  // namespace runtime
