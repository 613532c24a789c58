// A random life of a server: requests of every kind, some with a common beginning, when they
// arrive, end or are given up, and the sizes that force chunking, waiting, eviction and retraction.
// Drawn from one seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "runtime/scheduler.hpp"
#include "tests/support/small_cache.hpp"

namespace support {

struct ScheduleLimits {
  uint32_t vocab_size = 24;
  uint32_t requests = 8;
  uint32_t prompt_tokens = 40;
  uint32_t output_tokens = 24;
  uint32_t last_arrival = 100;         // in deliveries
  std::vector<uint32_t> chunk_tokens;  // one of these, each at least 1
  std::vector<uint32_t> page_tokens;
};

struct ScheduledRequest {
  runtime::Submit submit;
  uint32_t arrives_at = 0;              // queue deliveries after the start
  std::optional<uint32_t> aborted_at;   // likewise
  std::optional<uint64_t> deadline_us;  // after its arrival
  std::map<uint64_t, uint32_t>
      stopped;  // sequence -> output tokens after which its session sends StopSequence
};

struct RandomSchedule {
  runtime::SchedulerConfig config;
  SmallCache cache;  // its block sizes are the model's
  std::vector<ScheduledRequest> requests;
};

class ScheduleMaker {
 public:
  ScheduleMaker(const ScheduleLimits& limits, uint64_t seed) : limits_(limits), rng_(seed) {}

  RandomSchedule make() {
    RandomSchedule schedule;
    for (std::vector<runtime::TokenId>& document : documents_) {
      document.clear();
      for (uint32_t i = 0; i < limits_.prompt_tokens; ++i) document.push_back(token());
    }
    const uint32_t count = between(1, limits_.requests);
    for (uint32_t i = 0; i < count; ++i) schedule.requests.push_back(request(i + 1));
    runtime::SchedulerConfig& config = schedule.config;
    config.page_tokens = pick(limits_.page_tokens);
    config.chunk_tokens = pick(limits_.chunk_tokens);
    config.context_length = limits_.prompt_tokens + limits_.output_tokens;
    config.max_running = one_in(6) ? 1 : between(2, 6);
    config.plans_in_flight = one_in(4) ? 1 : 2;
    config.prefix_cache = !one_in(12);
    // From hardly more than one sequence needs to room for everything.
    const uint32_t slots = one_in(3) ? between(1, config.max_running) : config.max_running * 4;
    // At least what the longest sequence can need, so nothing is refused; often hardly more, so
    // running sequences collide.
    const uint32_t least = (config.context_length + config.page_tokens - 1) / config.page_tokens;
    const uint32_t pages = least + (one_in(2) ? least * 4 : between(0, 2));
    schedule.cache.slots = slots;
    schedule.cache.pages = pages;
    schedule.cache.unified = !one_in(3);
    schedule.cache.lru = one_in(4);
    if (one_in(2)) schedule.cache.host = 0.25 * between(1, 16);
    return schedule;
  }

 private:
  ScheduledRequest request(uint64_t id) {
    ScheduledRequest made;
    made.submit.request = {id};
    made.submit.priority = one_in(3) ? static_cast<int32_t>(between(0, 4)) - 2 : 0;
    made.arrives_at = between(0, limits_.last_arrival);
    runtime::NewSequence sequence;
    sequence.prompt = prompt();
    sequence.name_space = one_in(8) ? 1 : 0;
    sequence.max_tokens = one_in(2) ? limits_.output_tokens : between(1, limits_.output_tokens);
    sequence.sampling = sampling();
    if (one_in(4)) sequence.prompt_logprobs = true;
    if (sequence.prompt_logprobs && one_in(3)) sequence.max_tokens = 0;
    const uint32_t choices = one_in(3) ? between(2, 3) : 1;
    for (uint32_t choice = 0; choice < choices; ++choice) {
      sequence.sequence = {id * 10 + choice};
      sequence.sampling.choice = choice;
      made.submit.sequences.push_back(sequence);
      if (one_in(8)) made.stopped[sequence.sequence.value] = between(1, limits_.output_tokens);
    }
    if (one_in(6)) made.aborted_at = made.arrives_at + between(0, 2 * limits_.last_arrival);
    if (one_in(10)) made.deadline_us = between(1, 300);
    return made;
  }

  std::vector<runtime::TokenId> prompt() {
    std::vector<runtime::TokenId> tokens;
    if (one_in(2)) {  // a beginning that others have too, and maybe nothing else
      const auto& document = documents_[between(0, kDocuments - 1)];
      const uint32_t shared = one_in(2) ? limits_.prompt_tokens : between(1, limits_.prompt_tokens);
      tokens.assign(document.begin(), document.begin() + shared);
      const uint32_t rest = limits_.prompt_tokens - shared;
      for (uint32_t i = one_in(2) ? 0 : between(0, rest); i > 0; --i) tokens.push_back(token());
      return tokens;
    }
    const uint32_t longest =
        one_in(2) ? limits_.prompt_tokens : 6;  // many short prompts: many grow at once
    for (uint32_t i = between(1, longest); i > 0; --i) tokens.push_back(token());
    return tokens;
  }

  runtime::SamplingParams sampling() {
    runtime::SamplingParams params;
    params.temperature = one_in(3) ? 0.0f : 0.25f * static_cast<float>(between(1, 8));
    if (one_in(3)) params.top_p = 0.1f * static_cast<float>(between(1, 9));
    if (one_in(3)) params.top_k = static_cast<int32_t>(between(1, limits_.vocab_size));
    if (one_in(4)) params.min_p = 0.05f;
    if (one_in(3)) params.repetition_penalty = 1.2f;
    if (one_in(3)) params.frequency_penalty = 0.3f;
    if (one_in(3)) params.presence_penalty = -0.4f;
    if (one_in(4)) params.logit_bias = {{token(), 1.5f}, {token(), -2.0f}};
    params.seed = rng_();
    if (one_in(3)) params.top_logprobs = static_cast<int32_t>(between(0, 5));
    if (one_in(3)) params.min_tokens = between(1, limits_.output_tokens);
    params.ignore_eos = one_in(2);
    if (!params.ignore_eos) params.stop_ids = {0};
    if (one_in(4)) params.stop_ids.push_back(token());
    return params;
  }

  uint32_t between(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(rng_() % (high - low + 1));
  }
  bool one_in(uint32_t n) { return rng_() % n == 0; }
  uint32_t pick(const std::vector<uint32_t>& from) { return from[rng_() % from.size()]; }
  runtime::TokenId token() { return static_cast<runtime::TokenId>(rng_() % limits_.vocab_size); }

  static constexpr uint32_t kDocuments = 2;
  ScheduleLimits limits_;
  std::mt19937_64 rng_;
  std::array<std::vector<runtime::TokenId>, kDocuments> documents_;
};

}  // namespace support
