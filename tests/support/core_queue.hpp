// Scheduler, cache manager and worker cores joined by message queues, without actors: each pair's
// messages stay in order (as CAF keeps them per sender), and which queue is served next is a seeded
// choice that the actors' threads could also have made. Every message is checked: a slot that was
// given to the cache is read by restores and written by nobody, until it comes back.
#pragma once

#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"
#include "memory/move_checker.hpp"
#include "runtime/engine.hpp"
#include "runtime/scheduler.hpp"

namespace support {

class CoreQueue {
 public:
  using SessionSink = std::function<void(const runtime::SessionEvent&)>;

  CoreQueue(const runtime::SchedulerConfig& config, memory::HybridCache& cache,
            runtime::Engine& engine, uint64_t seed, SessionSink sink)
      : scheduler_(config),
        cache_(cache),
        engine_(engine),
        moves_(cache.move_geometry(), true),
        rng_(seed),
        sink_(std::move(sink)) {
    for (uint32_t& weight : weights_)
      weight = 1u << (rng_() % 6);  // a slow worker, a slow cache manager, ...
    scheduler_.moves().listen([this](const memory::MoveRecord& record) {
      const auto violation = moves_.take(record);
      if (violation) std::fprintf(stderr, "%s\n", memory::to_text(*violation).c_str());
      VERIFY(!violation);
    });
  }

  // From the gateway and the sessions; they queue up like everything else. The sink may call these.
  void send(runtime::SchedulerEvent event) { events_.push_back(std::move(event)); }

  // Serves one message. False: nothing is waiting anywhere.
  bool step() {
    const std::array<bool, kQueues> waiting{!events_.empty(), !requests_.empty(), !answers_.empty(),
                                            !plans_.empty(), !results_.empty()};
    uint32_t total = 0;
    for (size_t i = 0; i < kQueues; ++i) total += waiting[i] ? weights_[i] : 0;
    if (total == 0) return false;
    auto drawn = static_cast<uint32_t>(rng_() % total);
    for (size_t i = 0; i < kQueues; ++i) {
      const uint32_t weight = waiting[i] ? weights_[i] : 0;
      if (drawn < weight) {
        serve(i);
        return true;
      }
      drawn -= weight;
    }
    return false;
  }

  void advance_us(uint64_t elapsed_us) { now_us_ += elapsed_us; }
  uint64_t now_us() const { return now_us_; }
  const runtime::Scheduler& scheduler() const { return scheduler_; }
  CoreQueue(const CoreQueue&) = delete;
  // By the move log: nothing is owned but by the cache.
  bool all_given_back() const { return moves_.finish().empty(); }

 private:
  static constexpr size_t kQueues = 5;

  void serve(size_t queue) {
    switch (queue) {
      case 0:
        return schedule(pop(events_));
      case 1:
        return answer(pop(requests_));
      case 2:
        return schedule(pop(answers_));
      case 3:
        if (auto result = engine_.run(pop(plans_))) results_.push_back(std::move(*result));
        return;
      default:
        return schedule(pop(results_));
    }
  }

  void answer(const memory::CacheRequest& request) {
    memory::CacheReply reply;
    cache_.handle(request, reply);
    cache_.check();
    if (!reply.empty()) answers_.push_back(std::move(reply));
  }

  void schedule(runtime::SchedulerEvent event) {
    if (const auto* reply = std::get_if<memory::CacheReply>(&event)) {
      for (const memory::CacheAnswer& answer : reply->answers) {
        const auto* refilled = std::get_if<memory::Refilled>(&answer);
        if (refilled && refilled->slot) donated_.erase(*refilled->slot);
      }
    }
    std::vector<runtime::SchedulerOutput> outputs;
    scheduler_.handle(std::move(event), ++now_us_, outputs);
    scheduler_.check();
    for (runtime::SchedulerOutput& output : outputs) {
      if (auto* request = std::get_if<memory::CacheRequest>(&output)) {
        if (const auto* donate = std::get_if<memory::Donate>(request))
          VERIFY(donated_.insert(donate->slot).second);
        requests_.push_back(std::move(*request));
      }
      if (auto* plan = std::get_if<runtime::StepPlan>(&output)) {
        for (const runtime::Command& command : plan->commands)
          std::visit([&](const auto& value) { check(value); }, command);
        plans_.push_back(std::move(*plan));
      }
      if (auto* event_out = std::get_if<runtime::SessionEvent>(&output)) sink_(*event_out);
    }
  }

  void check(const memory::Clear& clear) const { VERIFY(!donated_.contains(clear.slot)); }
  void check(const memory::Restore& restore) const {
    VERIFY(donated_.contains(restore.from));
    VERIFY(!donated_.contains(restore.to));
  }
  void check(const runtime::Forward& forward) const {
    std::set<memory::SlotId> written;
    for (const runtime::PlanRow& row : forward.rows) {
      for (const runtime::Snapshot& snapshot : row.snapshots) {
        VERIFY(!donated_.contains(snapshot.slot));
        VERIFY(written.insert(snapshot.slot).second);
      }
    }
  }
  template <class Command>
  void check(const Command&) const {}  // the engine checks the generations

  template <class Message>
  static Message pop(std::deque<Message>& queue) {
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

  runtime::Scheduler scheduler_;
  memory::HybridCache& cache_;
  runtime::Engine& engine_;
  memory::MoveChecker moves_;
  std::mt19937_64 rng_;
  SessionSink sink_;
  std::array<uint32_t, kQueues> weights_{};
  uint64_t now_us_ = 0;
  std::set<memory::SlotId> donated_;  // an id is never used again once its slot is released
  std::deque<runtime::SchedulerEvent> events_;  // gateway and sessions -> scheduler
  std::deque<memory::CacheRequest> requests_;   // scheduler -> cache manager
  std::deque<memory::CacheReply> answers_;      // cache manager -> scheduler
  std::deque<runtime::StepPlan> plans_;         // scheduler -> worker
  std::deque<runtime::StepResult> results_;     // worker -> scheduler
};

}  // namespace support
