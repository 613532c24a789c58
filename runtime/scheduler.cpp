#include "runtime/scheduler.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/admission.hpp"
#include "runtime/plan_builder.hpp"
#include "runtime/request_queue.hpp"
#include "runtime/request_table.hpp"
#include "runtime/retraction.hpp"

namespace runtime {
namespace {

using Phase = Sequence::Phase;

struct Ending {
  FinishReason reason = FinishReason::kStop;
  std::optional<TokenId> stop_id;
  std::optional<kernels::Error> error;
};

const char* why(kernels::ErrorCode code) {
  switch (code) {
    case kernels::ErrorCode::kTimeout: return "the request's deadline passed";
    case kernels::ErrorCode::kUnavailable: return "the server is shutting down";
    default: return "the request was aborted";
  }
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(const SchedulerConfig& settings)
      : config(settings), admission(settings), builder(settings) {
    VERIFY(config.plans_in_flight > 0);
    std::sort(config.model_end_ids.begin(), config.model_end_ids.end());
  }

  void handle(SchedulerEvent&& event, uint64_t now_us);
  void check() const;

  // ---- events ----
  void on(Submit&& event);
  void on(Abort&& event) { abort(event.request, event.code); }
  void on(StopSequence&& event);
  void on(memory::CacheAnswer&& answer);
  void on(StepResult&& result);
  void on(Tick&&) {}

  void on_answer(memory::Grant&& grant);
  void on_answer(memory::Refusal&& refusal);
  void on_answer(memory::Freed&&) { admission.freed(); }
  void on_row(Sequence& sequence, const PlannedStep::Row& planned, RowResult&& row);
  void on_prompt(Sequence& sequence, const PlannedStep::Row& planned, RowResult& row);
  void on_token(Sequence& sequence, RowResult& row);

  // ---- ends ----
  void abort(RequestId request, kernels::ErrorCode code);
  void expire(uint64_t now_us);
  void retract(Sequence& sequence);
  void finish(Sequence& sequence, Ending ending);
  void end_admission(Sequence& sequence);

  // ---- what follows every event ----
  void send_plans();
  void grow();
  void admit();

  Sequence* find(SequenceId id) {
    const auto found = sequences.find(id);
    return found == sequences.end() ? nullptr : &found->second;
  }
  bool ends(const Sequence& sequence, TokenId token) const;
  template <class Output>
  void send(Output&& output) {
    out->emplace_back(std::forward<Output>(output));
  }

  SchedulerConfig config;
  Admission admission;
  PlanBuilder builder;
  RequestQueue queue;
  std::unordered_map<SequenceId, Sequence> sequences;  // node-based: pointers stay valid
  RequestTable requests;
  std::vector<Sequence*> running;                      // in the order of goes_before()
  std::vector<SequenceId> closes;                      // records the worker may drop with the next plan
  std::deque<PlannedStep> in_flight;                   // plans with a Forward whose result is not back
  std::vector<PlannedStep> spare;                      // their memory, reused
  uint64_t arrivals = 0;
  SchedulerStats counters;
  std::vector<SchedulerOutput>* out = nullptr;
};

void Scheduler::Impl::handle(SchedulerEvent&& event, uint64_t now_us) {
  std::visit([&](auto& value) { on(std::move(value)); }, event);
  expire(now_us);
  send_plans();
  grow();  // before admit(): a sequence just retracted must not ask ahead of the one it made room for
  admit();
}

void Scheduler::Impl::on(Submit&& event) {
  ++counters.requests_total;
  std::optional<kernels::Error> refusal;  // one bad sequence refuses the request: the client gets one answer
  for (const NewSequence& sequence : event.sequences) {
    if (!refusal) refusal = admission.refuse(sequence);
  }
  if (refusal) {
    for (const NewSequence& sequence : event.sequences) {
      SequenceFinished finished{event.request, sequence.sequence, FinishReason::kError, {}, refusal, 0, 0, 0};
      finished.prompt_tokens = static_cast<uint32_t>(sequence.prompt.size());
      send(SessionEvent{std::move(finished)});
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
    sequence.tokens = std::move(from.prompt);
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
  if (!sequence || sequence->ticket != grant.ticket) return;  // its Release is already behind the Reserve
  const bool starts = sequence->phase == Phase::kReserving;
  admission.granted(*sequence, std::move(grant));
  if (!starts) return;
  const auto place = std::upper_bound(running.begin(), running.end(), sequence,
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
    // Nobody else holds a block, so waiting cannot help: the pool is smaller than SchedulerConfig::capacity says.
    admission.freed();  // the next in the queue finds out for itself
    kernels::Error error{kernels::ErrorCode::kInternal, "the cache manager refused the only running sequence a page", {}};
    finish(*sequence, {FinishReason::kError, {}, std::move(error)});
  } else if (sequence->phase == Phase::kRunning) {
    if (Sequence* victim = choose_victim(running)) retract(*victim);
  }
}

void Scheduler::Impl::on(StepResult&& result) {
  VERIFY(!in_flight.empty());
  PlannedStep planned = std::move(in_flight.front());
  in_flight.pop_front();
  VERIFY(planned.step == result.step);
  VERIFY(planned.rows.size() == result.rows.size());
  ++counters.steps_total;
  for (size_t i = 0; i < planned.rows.size(); ++i) {
    VERIFY(planned.rows[i].sequence == result.rows[i].sequence);
    Sequence* sequence = find(planned.rows[i].sequence);
    if (sequence && sequence->epoch == planned.rows[i].epoch) {
      on_row(*sequence, planned.rows[i], std::move(result.rows[i]));
    } else {
      ++counters.ghost_rows_total;  // it ended or was retracted after this plan was sent
    }
  }
  spare.push_back(std::move(planned));
}

void Scheduler::Impl::on_row(Sequence& sequence, const PlannedStep::Row& planned, RowResult&& row) {
  if (!row.finite) {
    kernels::Error error{kernels::ErrorCode::kInternal,
                         "the model produced a value that is not finite at position " +
                             std::to_string(planned.position + planned.count - 1),
                         {}};
    finish(sequence, {FinishReason::kError, {}, std::move(error)});
    return;
  }
  if (planned.position < sequence.prompt_tokens) on_prompt(sequence, planned, row);
  if (planned.sample) {
    on_token(sequence, row);
  } else if (sequence.max_tokens == 0 && planned.position + planned.count == sequence.prompt_tokens) {
    finish(sequence, {FinishReason::kLength, {}, {}});
  }
}

void Scheduler::Impl::on_prompt(Sequence& sequence, const PlannedStep::Row& planned, RowResult& row) {
  const uint32_t end = std::min(planned.position + planned.count, sequence.prompt_tokens);
  if (end > sequence.prompt_counted) {
    counters.prompt_tokens_total += end - sequence.prompt_counted;
    sequence.prompt_counted = end;
  }
  if (!sequence.prompt_logprobs || sequence.prompt_sent) return;
  VERIFY(sequence.prompt.size() == planned.position);  // positions 1 .. position are known
  std::move(row.prompt.begin(), row.prompt.end(), std::back_inserter(sequence.prompt));
  if (end < sequence.prompt_tokens) return;
  VERIFY(sequence.prompt.size() == sequence.prompt_tokens - 1);
  sequence.prompt_sent = true;
  send(SessionEvent{SequencePrompt{sequence.request, sequence.id, std::move(sequence.prompt)}});
  sequence.prompt.clear();
}

void Scheduler::Impl::on_token(Sequence& sequence, RowResult& row) {
  VERIFY(row.token.has_value());
  VERIFY(row.token_position == sequence.tokens.size());
  ++counters.generation_tokens_total;
  if (ends(sequence, *row.token)) {
    finish(sequence, {FinishReason::kStop, row.token, {}});
    return;
  }
  sequence.tokens.push_back(*row.token);
  send(SessionEvent{SequenceToken{sequence.request, sequence.id, *row.token, std::move(row.logprobs)}});
  if (sequence.output_tokens() == sequence.max_tokens) finish(sequence, {FinishReason::kLength, {}, {}});
}

bool Scheduler::Impl::ends(const Sequence& sequence, TokenId token) const {
  const std::vector<TokenId>& own = sequence.sampling.stop_ids;
  if (std::find(own.begin(), own.end(), token) != own.end()) return true;
  return !sequence.sampling.ignore_eos &&
         std::binary_search(config.model_end_ids.begin(), config.model_end_ids.end(), token);
}

void Scheduler::Impl::abort(RequestId request, kernels::ErrorCode code) {
  const std::vector<SequenceId> open = requests.sequences_of(request);
  if (open.empty()) return;
  ++counters.aborted_total;
  for (const SequenceId id : open) {
    Sequence* sequence = find(id);
    VERIFY(sequence != nullptr);
    std::string message = std::string(why(code)) + " after " + std::to_string(sequence->output_tokens()) + " output tokens";
    finish(*sequence, {FinishReason::kAbort, {}, kernels::Error{code, std::move(message), {}}});
  }
}

void Scheduler::Impl::expire(uint64_t now_us) {
  while (const auto late = requests.expired(now_us)) abort(*late, kernels::ErrorCode::kTimeout);
}

void Scheduler::Impl::retract(Sequence& sequence) {
  ++counters.retracted_total;
  counters.recomputed_tokens_total += std::min<uint64_t>(sequence.now.consumed, sequence.tokens.size());
  end_admission(sequence);
  sequence.prompt.clear();  // an unfinished prompt is read again from its first token
  queue.push(sequence);
}

void Scheduler::Impl::finish(Sequence& sequence, Ending ending) {
  if (sequence.phase == Phase::kQueued) queue.erase(sequence);
  end_admission(sequence);
  SequenceFinished finished;
  finished.request = sequence.request;
  finished.sequence = sequence.id;
  finished.reason = ending.reason;
  finished.stop_id = ending.stop_id;
  finished.error = std::move(ending.error);
  finished.prompt_tokens = sequence.prompt_tokens;
  finished.output_tokens = sequence.output_tokens() + (ending.stop_id ? 1 : 0);  // the end id was generated too
  send(SessionEvent{std::move(finished)});
  requests.ended(sequence.request, sequence.id);
  const SequenceId id = sequence.id;
  sequences.erase(id);
}

// The one place where an admission ends, whichever of finish, abort, stop and retraction comes first. Plans already sent may
// still name the sequence: the worker executes them before the Close, and before any Bind of these blocks to a new owner.
void Scheduler::Impl::end_admission(Sequence& sequence) {
  if (sequence.phase == Phase::kQueued) return;
  if (sequence.phase == Phase::kRunning) VERIFY(std::erase(running, &sequence) == 1);
  if (sequence.now.started) closes.push_back(sequence.id);
  send(memory::CacheRequest{admission.release(sequence)});
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

void Scheduler::handle(SchedulerEvent event, uint64_t now_us, std::vector<SchedulerOutput>& out) {
  impl_->out = &out;
  impl_->handle(std::move(event), now_us);
  impl_->out = nullptr;
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

bool Scheduler::idle() const { return impl_->sequences.empty() && impl_->in_flight.empty() && impl_->closes.empty(); }

void Scheduler::check() const { impl_->check(); }

}  // namespace runtime
