#include "net/replay/modelled_replay.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"

namespace net {

namespace json = boost::json;

namespace {

// A request has one sequence, of this id.
runtime::SequenceId sequence_of(uint64_t request) { return {request << 32}; }
uint64_t request_of(runtime::SequenceId sequence) { return sequence.value >> 32; }

PlayEnd end_of(const runtime::SequenceFinished& finished) {
  using runtime::FinishReason;
  if (finished.reason == FinishReason::kError) return PlayEnd::kFailed;
  if (finished.reason != FinishReason::kAbort) return PlayEnd::kFinished;
  return finished.error && finished.error->code == kernels::ErrorCode::kTimeout
             ? PlayEnd::kTimedOut
             : PlayEnd::kLeft;
}

}  // namespace

ModelledReplay::ModelledReplay(const Config& config, const Trace& trace,
                               const std::vector<uint32_t>& sessions, const PromptSource& prompts,
                               runtime::DeviceClock& clock, Listener listener)
    : config_(config),
      prompts_(prompts),
      pacer_(trace, config.pace, sessions),
      metrics_(config.slo),
      listener_(std::move(listener)),
      server_(
          config.server, clock,
          [this](runtime::SequenceId sequence, uint32_t index) { return answer(sequence, index); },
          *this) {}

// Always what happens first; at equal times the server, then the clients, so that a request that
// comes as a step ends finds its results.
void ModelledReplay::run() {
  server_.settle();
  for (;;) {
    const auto step_ns = server_.next_ns();
    const auto due = pacer_.next();
    const auto phase_ns = pacer_.next_phase_ns();
    if (!step_ns && !due && !phase_ns) break;
    constexpr uint64_t kNever = UINT64_MAX;
    const uint64_t step_at = step_ns.value_or(kNever), due_at = due ? due->at_ns : kNever;
    const uint64_t phase_at = phase_ns.value_or(kNever);
    if (step_at <= due_at && step_at <= phase_at) {
      if (config_.skip && server_.skip(std::min(due_at, phase_at), steps_to_next_leave())) continue;
      advance(step_at);
    } else if (phase_at <= due_at) {
      advance(std::max(phase_at, server_.now_ns()));
      pacer_.phase_begins(server_.now_ns());
    } else {
      advance(std::max(due_at, server_.now_ns()));
      while (pacer_.next() && pacer_.next()->at_ns <= server_.now_ns()) {
        const SessionPacer::Due now = *pacer_.next();
        pacer_.sent();
        send(now);
      }
      server_.settle();
    }
  }
  VERIFY(pacer_.done());
  VERIFY(open_.empty());
  VERIFY(server_.idle());
  timeline_.finish(server_.now_ns(), gauges());
}

void ModelledReplay::advance(uint64_t to_ns) {
  if (timeline_.ends_before(to_ns)) timeline_.pass(to_ns, gauges());
  server_.advance(to_ns);
}

ReplayGauges ModelledReplay::gauges() const {
  const memory::BlockPool& pool = server_.cache().pool();
  const memory::CacheOwners owners = server_.cache().owners();
  const runtime::SchedulerStats stats = server_.scheduler().stats();
  const uint64_t state_bytes = pool.state_region().block_bytes;
  const uint64_t page_bytes = pool.page_region().block_bytes;
  ReplayGauges now;
  now.running_states = (owners.states.held + owners.states.pending) * state_bytes;
  now.cached_states = owners.states.cached * state_bytes;
  now.running_kv = (owners.pages.held + owners.pages.pending) * page_bytes;
  now.cached_kv = owners.pages.cached * page_bytes;
  const uint64_t used =
      now.running_states + now.cached_states + now.running_kv + now.cached_kv;
  VERIFY(used <= config_.server.cache.arena.arena_bytes);
  now.free = config_.server.cache.arena.arena_bytes - used;
  now.host = owners.host.bytes;
  now.running = stats.running;
  now.queued = stats.queued;
  return now;
}

void ModelledReplay::send(const SessionPacer::Due& due) {
  const uint64_t id = ++last_id_;
  const uint32_t request = due.play.request;
  runtime::NewSequence sequence;
  sequence.sequence = sequence_of(id);
  sequence.prompt = prompts_.prompt(request);
  sequence.max_tokens = prompts_.output_tokens(request);
  Open open;
  open.record.play = due.play;
  open.record.sent_ns = server_.now_ns();
  open.record.prompt_tokens = static_cast<uint32_t>(sequence.prompt.size());
  open.leaves_after = leaves_after(config_.faults, due.play, sequence.max_tokens);
  open_.emplace(id, open);
  uint64_t deadline_us = 0;
  if (config_.faults.deadline_s > 0)
    deadline_us = server_.now_ns() / 1000 + static_cast<uint64_t>(config_.faults.deadline_s * 1e6);
  server_.submit({{id}, {std::move(sequence)}, 0, deadline_us});
}

runtime::TokenId ModelledReplay::answer(runtime::SequenceId sequence, uint32_t index) const {
  const auto found = open_.find(request_of(sequence));
  if (found == open_.end()) return 0;  // a ghost row: nobody hears it
  return prompts_.answer(found->second.record.play.request, index);
}

void ModelledReplay::on_hit(uint64_t, const runtime::CacheHit& hit) {
  Open& open = open_.at(request_of(hit.sequence));
  if (std::exchange(open.has_hit, true)) return;  // after a retraction
  open.record.kv_hit = std::min(hit.kv, open.record.prompt_tokens);
  open.record.state_hit = hit.state;
}

void ModelledReplay::on_step(uint64_t begin_ns, uint64_t end_ns, const runtime::StepShape& shape) {
  ++steps_;
  busy_ns_ += end_ns - begin_ns;
  timeline_.count_prompt(shape.prefill_tokens);
  typical_steps_.add(shape);
  count_peaks(shape.decode_rows + shape.prefill_rows);
}

void ModelledReplay::count_peaks(uint64_t rows) {
  peak_rows_ = std::max(peak_rows_, rows);
  const memory::BlockCounts counts = server_.cache().pool().counts();
  peak_states_ = std::max(peak_states_, counts.states.held);
  peak_pages_ = std::max(peak_pages_, counts.pages.held);
}

void ModelledReplay::on_skipped(const runtime::SkippedSteps& skipped) {
  const size_t steps = skipped.steps.size(), rows = skipped.rows.size();
  std::optional<ReplayGauges> now;  // nothing changes it
  for (const auto& [begin_ns, end_ns] : skipped.steps) {
    if (timeline_.ends_before(end_ns)) {
      if (!now) now = gauges();
      timeline_.pass(end_ns, *now);
    }
    busy_ns_ += end_ns - begin_ns;
    timeline_.count_output(rows);
  }
  steps_ += steps;
  typical_steps_.add_decode(skipped.first, steps);
  count_peaks(rows);
  std::vector<PlayRecord*> records;
  records.reserve(rows);
  for (const runtime::SequenceId sequence : skipped.rows)
    records.push_back(&open_.at(request_of(sequence)).record);
  metrics_.tokens(skipped, records);
}

// How many tokens every client hears without one of them leaving.
uint32_t ModelledReplay::steps_to_next_leave() const {
  uint32_t steps = UINT32_MAX;
  if (config_.faults.leave_share <= 0) return steps;
  for (const auto& [id, open] : open_) {
    if (open.leaves_after > open.record.output_tokens)
      steps = std::min(steps, open.leaves_after - open.record.output_tokens - 1);
  }
  return steps;
}

void ModelledReplay::on_event(uint64_t now_ns, const runtime::SessionEvent& event) {
  if (const auto* token = std::get_if<runtime::SequenceToken>(&event)) return heard(now_ns, *token);
  if (const auto* end = std::get_if<runtime::SequenceFinished>(&event)) finished(now_ns, *end);
}

void ModelledReplay::heard(uint64_t now_ns, const runtime::SequenceToken& token) {
  Open& open = open_.at(token.request.value);
  metrics_.token(open.record, now_ns);
  timeline_.count_output(1);
  if (open.leaves_after != 0 && open.record.output_tokens == open.leaves_after)
    server_.abort(token.request);
}

void ModelledReplay::finished(uint64_t now_ns, const runtime::SequenceFinished& finished) {
  const auto found = open_.find(finished.request.value);
  VERIFY(found != open_.end());
  PlayRecord record = found->second.record;
  open_.erase(found);
  record.end = end_of(finished);
  end_ns_ = now_ns;
  metrics_.ended(record);
  if (listener_) listener_(record);
  pacer_.ended(record.play, now_ns);
}

json::object ModelledReplay::result() const {
  json::object out = metrics_.summary(end_ns_);
  const runtime::SchedulerStats stats = server_.scheduler().stats();
  const memory::CacheCounters counters = server_.cache().counters();
  const auto room = static_cast<size_t>(memory::EvictionReason::kRoom);
  out["steps"] = steps_;
  out["busy_share"] = ratio(static_cast<double>(busy_ns_), static_cast<double>(end_ns_));
  out["peak_rows"] = peak_rows_;
  out["retracted"] = stats.retracted_total;
  out["recomputed_tokens"] = stats.recomputed_tokens_total;
  out["evicted_states"] = counters.evicted_slots[room];
  out["evicted_pages"] = counters.evicted_pages[room];
  out["moves"] = counters.state_moves + counters.page_moves;
  out["snapshots"] = stats.snapshots_total;
  out["snapshots_skipped"] = stats.snapshots_skipped_total;
  out["host_states_in"] = counters.staged_in[0];
  out["host_pages_in"] = counters.staged_in[1];
  out["host_states_out"] = counters.staged_out[0];
  out["host_pages_out"] = counters.staged_out[1];
  out["peak_states"] = peak_states_;
  out["peak_pages"] = peak_pages_;
  // Each, when the arena holds nothing of the other kind.
  out["states_max"] = server_.cache().slots_max();
  out["pages_max"] = server_.cache().pool().pages_beside(0);
  return out;
}

}  // namespace net
