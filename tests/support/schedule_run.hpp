// Runs a schedule through the cores and keeps what each sequence's session received.
#pragma once

#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/core_queue.hpp"
#include "tests/support/random_schedule.hpp"

namespace support {

struct Heard {  // by the session of one sequence
  std::vector<runtime::TokenId> tokens;
  std::vector<std::optional<runtime::PositionLogprobs>> logprobs;  // one per token
  std::vector<runtime::PositionLogprobs> prompt;
  uint32_t prompts = 0;  // SequencePrompt events
  std::vector<runtime::SequenceFinished> finished;
  // Ended from outside: what was heard is a prefix of what the sequence would have said.
  bool cut_short() const {
    using runtime::FinishReason;
    return finished.at(0).reason == FinishReason::kAbort ||
           (finished.at(0).reason == FinishReason::kStop && !finished.at(0).stop_id);
  }
};

struct RunOutcome {
  std::map<uint64_t, Heard> heard;  // by sequence
  runtime::SchedulerStats stats;
  bool drained = false;  // the scheduler is idle and every block is back
};

using ModelMaker = std::function<std::unique_ptr<runtime::Model>(uint32_t page_tokens)>;

inline RunOutcome run_schedule(const RandomSchedule& schedule, const ModelMaker& make_model,
                               uint64_t seed) {
  const auto device = kernels::make_cpu_device();
  auto model = make_model(schedule.config.page_tokens);
  const runtime::CacheGeometry geometry = model->geometry();
  const uint32_t slots = schedule.config.capacity.states.total,
                 pages = schedule.config.capacity.pages.total;
  memory::PoolConfig pool_config;
  pool_config.state_bytes = geometry.state_bytes;
  pool_config.page_bytes = geometry.page_bytes;
  pool_config.max_slots = slots;
  pool_config.arena_bytes =
      (slots * geometry.state_bytes + 63) / 64 * 64 + pages * geometry.page_bytes;
  pool_config.state_share = 0.999;  // max_slots bounds it
  auto pool = memory::make_split_pool(pool_config);
  const runtime::EngineLayout layout{pool_config.arena_bytes, pool->state_region(),
                                     pool->page_region()};
  memory::CacheCore cache(std::move(pool));
  runtime::SchedulerConfig config = schedule.config;
  config.capacity = cache.counts();
  runtime::Engine engine(*device, std::move(model), layout);

  RunOutcome outcome;
  std::map<uint64_t, uint32_t> stopped;
  for (const ScheduledRequest& request : schedule.requests)
    stopped.insert(request.stopped.begin(), request.stopped.end());
  CoreQueue* queue_address = nullptr;
  CoreQueue queue(config, cache, engine, seed, [&](const runtime::SessionEvent& event) {
    if (const auto* token = std::get_if<runtime::SequenceToken>(&event)) {
      Heard& heard = outcome.heard[token->sequence.value];
      heard.tokens.push_back(token->token);
      heard.logprobs.push_back(token->logprobs);
      const auto stop = stopped.find(token->sequence.value);
      if (stop != stopped.end() && heard.tokens.size() == stop->second) {
        queue_address->send(runtime::StopSequence{token->sequence});
      }
    } else if (const auto* prompt = std::get_if<runtime::SequencePrompt>(&event)) {
      outcome.heard[prompt->sequence.value].prompt = prompt->prompt;
      ++outcome.heard[prompt->sequence.value].prompts;
    } else if (const auto* finished = std::get_if<runtime::SequenceFinished>(&event)) {
      outcome.heard[finished->sequence.value].finished.push_back(*finished);
    }
  });
  queue_address = &queue;

  std::multimap<uint32_t, const ScheduledRequest*> arrivals, aborts;
  for (const ScheduledRequest& request : schedule.requests) {
    arrivals.emplace(request.arrives_at, &request);
    if (request.aborted_at) aborts.emplace(*request.aborted_at, &request);
  }
  bool busy = true;
  for (uint32_t delivery = 0; busy || !arrivals.empty() || !aborts.empty(); ++delivery) {
    for (; !arrivals.empty() && arrivals.begin()->first <= delivery;
         arrivals.erase(arrivals.begin())) {
      runtime::Submit submit = arrivals.begin()->second->submit;
      if (const auto deadline = arrivals.begin()->second->deadline_us)
        submit.deadline_us = queue.now_us() + *deadline;
      queue.send(std::move(submit));
    }
    for (; !aborts.empty() && aborts.begin()->first <= delivery; aborts.erase(aborts.begin())) {
      queue.send(runtime::Abort{aborts.begin()->second->submit.request});
    }
    busy = queue.step();
  }
  outcome.stats = queue.scheduler().stats();
  outcome.drained = queue.scheduler().idle() && cache.owner_count() == 0;
  return outcome;
}

// Every sequence on its own: an empty server, one large chunk, one large page, no aborts.
inline std::map<uint64_t, Heard> run_alone(const RandomSchedule& schedule,
                                           const ModelMaker& make_model) {
  std::map<uint64_t, Heard> alone;
  for (const ScheduledRequest& request : schedule.requests) {
    for (const runtime::NewSequence& sequence : request.submit.sequences) {
      RandomSchedule single;
      single.config = schedule.config;
      single.config.page_tokens = 64;
      single.config.chunk_tokens = schedule.config.context_length;
      single.config.max_running = 1;
      single.config.plans_in_flight = 1;
      single.config.capacity = {{1, 1, 0}, {16, 16, 0}};
      ScheduledRequest only;
      only.submit = {request.submit.request, {sequence}, 0, 0};
      single.requests.push_back(only);
      alone.merge(run_schedule(single, make_model, 0).heard);
    }
  }
  return alone;
}

// Equal to the last bit.
inline bool same_bits(const runtime::PositionLogprobs& a, const runtime::PositionLogprobs& b) {
  const auto same = [](const runtime::TokenLogprob& x, const runtime::TokenLogprob& y) {
    return x.token == y.token &&
           std::bit_cast<uint32_t>(x.logprob) == std::bit_cast<uint32_t>(y.logprob);
  };
  return same(a.chosen, b.chosen) &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(), same);
}

}  // namespace support
