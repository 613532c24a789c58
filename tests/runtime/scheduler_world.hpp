// The scheduler core between a cache and a FakeWorker. Messages lie in four queues, each
// first in, first out; the test (or a random number) chooses which one is served next, as the
// actors' mailboxes might.
#pragma once

#include <deque>

#include "memory/move_checker.hpp"
#include "scheduler_worker.hpp"
#include "tests/support/small_cache.hpp"

namespace runtime_test {

struct Settings {
  runtime::SchedulerConfig scheduler;
  support::SmallCache cache;
};

inline Settings settings(uint32_t slots, uint32_t pages, uint32_t page_tokens,
                         uint32_t chunk_tokens) {
  Settings s;
  s.cache = {slots, pages, page_tokens};
  s.scheduler.context_length = 200;
  s.scheduler.page_tokens = page_tokens;
  s.scheduler.max_running = slots;
  s.scheduler.chunk_tokens = chunk_tokens;
  s.scheduler.pages_max = pages;
  return s;
}

struct Life {  // what the session of a sequence saw, and what it may see
  runtime::NewSequence asked;
  runtime::RequestId request;
  std::vector<TokenId> output;
  std::vector<runtime::SequencePrompt> prompts;
  std::vector<runtime::SequenceFinished> finished;
  uint32_t rows_planned = 0;
};

class World {
 public:
  explicit World(const Settings& s)
      : config(s.scheduler),
        scheduler(s.scheduler),
        cache(support::make_small_cache(s.cache)),
        worker(s.scheduler.page_tokens),
        moves(cache.move_geometry(), true) {
    scheduler.moves().listen([this](const memory::MoveRecord& record) {
      if (const auto violation = moves.take(record)) FAIL(memory::to_text(*violation));
      if (move_log) move_log->push_back(record);
    });
  }
  World(const World&) = delete;

  // ---- events ----
  void submit(runtime::Submit submit) {
    for (auto& sequence : submit.sequences) {
      // As the text encoder does with the model's end ids.
      if (!sequence.sampling.ignore_eos) sequence.sampling.stop_ids.push_back(0);
      lives[sequence.sequence] = {sequence, submit.request, {}, {}, {}, 0};
    }
    handle(std::move(submit));
  }
  SequenceId submit_one(std::vector<TokenId> prompt, uint32_t max_tokens, int32_t priority = 0,
                        bool ignore_eos = true) {
    runtime::NewSequence sequence;
    sequence.sequence = {++last_id};
    sequence.prompt = std::move(prompt);
    sequence.max_tokens = max_tokens;
    sequence.sampling.ignore_eos = ignore_eos;
    submit({{last_id}, {sequence}, priority, 0});
    return sequence.sequence;
  }
  void abort(SequenceId id) { handle(runtime::Abort{lives.at(id).request}); }
  void handle(runtime::SchedulerEvent event) {
    std::vector<runtime::SchedulerOutput> out;
    scheduler.handle(std::move(event), now_us, out);
    scheduler.check();
    for (auto& output : out) std::visit([&](auto& value) { take(value); }, output);
  }

  // ---- deliveries; false when the queue is empty ----
  bool serve_cache() {
    if (to_cache.empty()) return false;
    const memory::CacheRequest request = to_cache.front();
    to_cache.pop_front();
    memory::CacheReply reply;
    const size_t owners = cache.ledger().all().size();
    cache.handle(request, reply);
    cache.check();
    admitted += cache.ledger().all().size() > owners ? 1 : 0;
    given_back += cache.ledger().all().size() < owners ? 1 : 0;
    if (!reply.empty()) replies.push_back(std::move(reply));
    return true;
  }
  bool deliver_answer() {
    if (replies.empty()) return false;
    memory::CacheReply next = std::move(replies.front());
    replies.pop_front();
    for (const memory::CacheAnswer& answer : next.answers)
      std::visit([&](const auto& value) { answered(value); }, answer);
    handle(std::move(next));
    return true;
  }
  bool run_plan() {
    if (to_worker.empty()) return false;
    const runtime::StepPlan plan = std::move(to_worker.front());
    to_worker.pop_front();
    if (auto result = worker.run(plan)) results.push_back(std::move(*result));
    return true;
  }
  bool deliver_result() {
    if (results.empty()) return false;
    runtime::StepResult result = std::move(results.front());
    results.pop_front();
    --forwards_in_flight;
    handle(std::move(result));
    return true;
  }
  bool serve_memory() {  // everything between scheduler and cache manager
    bool any = false;
    while (serve_cache() || deliver_answer()) any = true;
    return any;
  }
  bool step() {  // one round of everybody; false when nothing is left to do
    const bool memory = serve_memory();
    const bool ran = run_plan();
    const bool told = deliver_result();
    return memory || ran || told;
  }
  void drain(uint32_t most = 100000) {
    while (step()) REQUIRE(most-- > 0);
    check_empty();
  }
  void check_empty() const {
    REQUIRE(scheduler.idle());
    REQUIRE(cache.ledger().all().empty());
    REQUIRE(cache.owners().states.held + cache.owners().pages.held == 0);
    REQUIRE(admitted == given_back);  // once per admission
    REQUIRE(worker.record_count() == 0);
    for (const memory::MoveViolation& left : moves.finish()) FAIL(memory::to_text(left));
    REQUIRE(moves.totals().slots_cached == cache.owners().states.cached);
    REQUIRE(moves.totals().pages_cached == cache.owners().pages.cached);
    for (const auto& [id, life] : lives) {
      CAPTURE(id.value);
      REQUIRE(life.finished.size() == 1);
    }
  }
  const runtime::SequenceFinished& end_of(SequenceId id) const {
    REQUIRE(lives.at(id).finished.size() == 1);
    return lives.at(id).finished.front();
  }

  runtime::SchedulerConfig config;
  runtime::Scheduler scheduler;
  memory::HybridCache cache;
  FakeWorker worker;
  memory::MoveChecker moves;
  std::optional<std::vector<memory::MoveRecord>> move_log;  // all of it, if wanted
  std::deque<memory::CacheRequest> to_cache;
  std::optional<std::vector<memory::CacheRequest>> log;  // of all that was asked, if wanted
  std::deque<memory::CacheReply> replies;
  std::deque<runtime::StepPlan> to_worker;
  std::deque<runtime::StepResult> results;
  std::map<SequenceId, Life> lives;
  uint32_t admitted = 0, given_back = 0;  // admissions
  runtime::StepPlan last_plan;
  uint32_t plans_sent = 0;
  uint32_t forwards_in_flight = 0;
  uint64_t now_us = 0, last_id = 0;

 private:
  void answered(const memory::Refilled&) {}
  template <class Answer>
  void answered(const Answer& value) {
    const auto found = asking.find(value.sequence);
    if (found != asking.end() && found->second == value.ticket) asking.erase(found);
  }

  void take(const memory::CacheRequest& request) {
    std::visit([&](const auto& value) { asked(value); }, request);
    to_cache.push_back(request);
    if (log) log->push_back(request);
  }
  // One Open or Grow of a sequence at a time.
  void asked(const memory::Open& open) {
    REQUIRE(open.restore_limit < open.key.elements.size());
    REQUIRE(asking.emplace(open.sequence, open.ticket).second);
  }
  void asked(const memory::Grow& grow) {
    REQUIRE(asking.emplace(grow.sequence, grow.ticket).second);
  }
  void asked(const memory::Drop& drop) { asking.erase(drop.sequence); }
  void asked(const memory::Restored&) {}
  void asked(const memory::Forget&) {}
  void asked(const memory::Donate& donate) {
    const Life& life = lives.at(donate.sequence);
    REQUIRE(donate.position % 64 == 0);
    REQUIRE(donate.position <= life.asked.prompt.size() + life.output.size());
  }
  void take(runtime::StepPlan& plan) {
    check_plan(plan);
    last_plan = plan;
    ++plans_sent;
    to_worker.push_back(std::move(plan));
  }
  void take(const runtime::SessionEvent& event) {
    std::visit([&](const auto& value) { see(value); }, event);
  }
  void see(const runtime::SequenceToken& token) {
    Life& life = lives.at(token.sequence);
    REQUIRE(life.finished.empty());
    REQUIRE(token.request == life.request);
    if (life.asked.prompt_logprobs) REQUIRE(life.prompts.size() == 1);
    life.output.push_back(token.token);
  }
  void see(const runtime::SequencePrompt& prompt) {
    Life& life = lives.at(prompt.sequence);
    REQUIRE(life.finished.empty());
    REQUIRE(life.output.empty());
    life.prompts.push_back(prompt);
  }
  void see(const runtime::SequenceFinished& finished) {
    lives.at(finished.sequence).finished.push_back(finished);
  }

  void check_plan(const runtime::StepPlan& plan) {
    REQUIRE(!plan.commands.empty());
    for (const auto& command : plan.commands) {
      if (const auto* bind = std::get_if<memory::Bind>(&command))
        bound.insert({bind->kind, bind->id, bind->generation});
      if (const auto* restore = std::get_if<memory::Restore>(&command)) {
        for (const memory::SlotId slot : {restore->from, restore->to})
          REQUIRE(bound.contains({BlockKind::kState, slot.index, slot.generation}));
      }
      const auto* forward = std::get_if<runtime::Forward>(&command);
      if (!forward) continue;
      REQUIRE(++forwards_in_flight <= config.plans_in_flight);
      REQUIRE(!forward->rows.empty());
      uint32_t tokens = 0;
      for (const runtime::PlanRow& row : forward->rows) {
        tokens += row.count;
        check_row(row);
      }
      REQUIRE(tokens <= config.chunk_tokens);
    }
  }
  void check_row(const runtime::PlanRow& row) {
    Life& life = lives.at(row.sequence);
    CAPTURE(row.sequence.value);
    REQUIRE(life.finished
                .empty());  // finished, aborted and stopped sequences are in no plan built later
    for (const memory::PageId page : row.new_pages)
      REQUIRE(bound.contains({BlockKind::kPage, page.index, page.generation}));
    if (row.start) {
      const memory::SlotId slot = row.start->slot;
      REQUIRE(bound.contains({BlockKind::kState, slot.index, slot.generation}));
      REQUIRE(row.start->prompt_tokens == life.asked.prompt.size());
      REQUIRE(row.start->tokens.size() == life.asked.prompt.size() + life.output.size());
    }
    // Lengths are known ahead: no row is planned past the last token.
    const size_t prompt = life.asked.prompt.size();
    REQUIRE(row.position + row.count <= prompt + std::max(life.asked.max_tokens, 1u) - 1);
    ++life.rows_planned;
  }

  std::map<SequenceId, uint64_t> asking;  // its ticket
  std::set<std::tuple<BlockKind, uint32_t, uint32_t>> bound;
};

// What a sequence yields when it runs alone.
struct Solo {
  std::vector<TokenId> output;
  runtime::FinishReason reason = runtime::FinishReason::kLength;
  std::optional<TokenId> stop_id;
  std::vector<float> prompt_logprobs;
};

inline Solo run_alone(const runtime::NewSequence& asked, std::optional<uint32_t> nan_at = {}) {
  Solo solo;
  uint64_t state = 0;
  for (size_t i = 0; i < asked.prompt.size(); ++i) {
    state = absorb(state, asked.prompt[i]);
    if (i + 1 < asked.prompt.size()) solo.prompt_logprobs.push_back(prompt_logprob(state));
  }
  auto is_in = [](TokenId token, const std::vector<TokenId>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  auto position = static_cast<uint32_t>(asked.prompt.size());
  if (nan_at && position >= *nan_at) solo.reason = runtime::FinishReason::kError;
  while (solo.reason == runtime::FinishReason::kLength && solo.output.size() < asked.max_tokens) {
    const TokenId token = choose(state, asked.sampling.seed, position++);
    if (is_in(token, asked.sampling.stop_ids)) {
      solo.reason = runtime::FinishReason::kStop;
      solo.stop_id = token;
      break;
    }
    solo.output.push_back(token);
    state = absorb(state, token);
    if (nan_at && position >= *nan_at && solo.output.size() < asked.max_tokens)
      solo.reason = runtime::FinishReason::kError;
  }
  return solo;
}

}  // namespace runtime_test
