// Runs a schedule through the cores and keeps what each sequence's session received.
#pragma once

#include <map>

#include "tests/support/core_server.hpp"
#include "tests/support/random_schedule.hpp"

namespace support {

struct RunOutcome {
  std::map<uint64_t, Heard> heard;  // by sequence
  runtime::SchedulerStats stats;
  memory::CacheCounters cache;
  bool drained = false;
};

inline RunOutcome run_schedule(const RandomSchedule& schedule, const ModelMaker& make_model,
                               uint64_t seed) {
  CoreServer server(schedule.config, schedule.cache, make_model, seed);
  std::multimap<uint32_t, const ScheduledRequest*> arrivals, aborts;
  for (const ScheduledRequest& request : schedule.requests) {
    for (const auto& [sequence, tokens] : request.stopped) server.stop_after(sequence, tokens);
    arrivals.emplace(request.arrives_at, &request);
    if (request.aborted_at) aborts.emplace(*request.aborted_at, &request);
  }
  bool busy = true;
  for (uint32_t delivery = 0; busy || !arrivals.empty() || !aborts.empty(); ++delivery) {
    for (; !arrivals.empty() && arrivals.begin()->first <= delivery;
         arrivals.erase(arrivals.begin())) {
      runtime::Submit submit = arrivals.begin()->second->submit;
      if (const auto deadline = arrivals.begin()->second->deadline_us)
        submit.deadline_us = server.now_us() + *deadline;
      server.submit(std::move(submit));
    }
    for (; !aborts.empty() && aborts.begin()->first <= delivery; aborts.erase(aborts.begin())) {
      server.abort(aborts.begin()->second->submit.request);
    }
    busy = server.step();
  }
  return {server.heard(), server.stats(), server.cache().counters(), server.drained()};
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
      single.config.prefix_cache = false;
      single.cache = {1, schedule.config.context_length / 64 + 2};
      ScheduledRequest only;
      only.submit = {request.submit.request, {sequence}, 0, 0};
      single.requests.push_back(only);
      alone.merge(run_schedule(single, make_model, 0).heard);
    }
  }
  return alone;
}

}  // namespace support
