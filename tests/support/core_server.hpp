// A server without actors: the cores, an engine, and what each sequence's session received.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/core_queue.hpp"
#include "tests/support/small_cache.hpp"

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

using ModelMaker = std::function<std::unique_ptr<runtime::Model>(uint32_t page_tokens)>;

class CoreServer {
 public:
  // The cache's block sizes are the model's. `seed` chooses the order of deliveries.
  CoreServer(const runtime::SchedulerConfig& config, const SmallCache& cache,
             const ModelMaker& make_model, uint64_t seed)
      : CoreServer(config, cache, make_model(config.page_tokens), seed) {}

  void submit(runtime::Submit submit) { queue_.send(std::move(submit)); }
  void abort(runtime::RequestId request) { queue_.send(runtime::Abort{request}); }
  // The session of `sequence` finds a stop string in its token number `tokens`.
  void stop_after(uint64_t sequence, uint32_t tokens) { stops_[sequence] = tokens; }
  bool step() { return queue_.step(); }
  void drain() {
    while (step()) {
    }
  }
  // One sequence, from its submission until nothing is left to do.
  const Heard& ask(runtime::NewSequence sequence) {
    const uint64_t id = ++last_id_ << 32;
    sequence.sequence = {id};
    submit({{id}, {std::move(sequence)}, 0, 0});
    drain();
    return heard_.at(id);
  }

  const std::map<uint64_t, Heard>& heard() const { return heard_; }  // by sequence
  uint64_t now_us() const { return queue_.now_us(); }
  runtime::SchedulerStats stats() const { return queue_.scheduler().stats(); }
  const memory::HybridCache& cache() const { return cache_; }
  runtime::HostArena& host() { return engine_.host(); }
  // As a process ends, and as the next one starts: nothing runs, nothing has run.
  runtime::SpillReport spill(const std::string& directory, uint64_t deadline_ns = UINT64_MAX) {
    engine_.spill_to({directory, header_});
    memory::CacheReply reply;
    cache_.spill(deadline_ns, reply);
    runtime::StepPlan plan;
    plan.commands.emplace_back(std::get<memory::Spill>(reply.commands.at(0)));
    engine_.run(plan);
    return *engine_.take_spilled();
  }
  runtime::SpillReport load(const std::string& directory) {
    return runtime::load_spill({directory, header_}, cache_, engine_.host());
  }
  // The scheduler is idle and every block is free or cached.
  bool drained() const {
    const memory::CacheOwners owners = cache_.owners();
    return queue_.scheduler().idle() && cache_.ledger().all().empty() &&
           owners.states.held + owners.pages.held == 0 && queue_.all_given_back();
  }

 private:
  CoreServer(const runtime::SchedulerConfig& config, SmallCache want,
             std::unique_ptr<runtime::Model> model, uint64_t seed)
      : want_(sized(want, *model)),
        header_{1, model->geometry().state_bytes, model->geometry().page_bytes, want_.page_tokens,
                std::lcm(64u, want_.page_tokens)},
        cache_(make_small_cache(want_)),
        engine_(*device_, std::move(model),
                {arena_bytes(want_), cache_.pool().state_region(), cache_.pool().page_region(),
                 host_bytes(want_)}),
        queue_(filled(config, cache_), cache_, engine_, seed,
               [this](const runtime::SessionEvent& event) {
                 std::visit([this](const auto& value) { hear(value); }, event);
               }) {}

  static SmallCache sized(SmallCache want, const runtime::Model& model) {
    const runtime::CacheGeometry geometry = model.geometry();
    want.page_tokens = geometry.page_tokens;
    want.state_bytes = (geometry.state_bytes + 63) / 64 * 64;
    want.page_bytes = (geometry.page_bytes + 63) / 64 * 64;
    return want;
  }
  static runtime::SchedulerConfig filled(runtime::SchedulerConfig config,
                                         const memory::HybridCache& cache) {
    config.pages_max = cache.positions_max() / config.page_tokens;
    return config;
  }

  void hear(const runtime::SequenceToken& token) {
    Heard& heard = heard_[token.sequence.value];
    heard.tokens.push_back(token.token);
    heard.logprobs.push_back(token.logprobs);
    const auto stop = stops_.find(token.sequence.value);
    if (stop != stops_.end() && heard.tokens.size() == stop->second)
      queue_.send(runtime::StopSequence{token.sequence, stop->second});
  }
  void hear(const runtime::SequencePrompt& prompt) {
    heard_[prompt.sequence.value].prompt = prompt.prompt;
    ++heard_[prompt.sequence.value].prompts;
  }
  void hear(const runtime::SequenceFinished& finished) {
    heard_[finished.sequence.value].finished.push_back(finished);
  }

  std::unique_ptr<kernels::Device> device_ = kernels::make_cpu_device();
  SmallCache want_;
  memory::SpillHeader header_;
  memory::HybridCache cache_;
  runtime::Engine engine_;
  CoreQueue queue_;
  std::map<uint64_t, Heard> heard_;
  std::map<uint64_t, uint32_t> stops_;
  uint64_t last_id_ = 0;
};

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
