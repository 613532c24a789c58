#include "runtime/sim/virtual_server.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

SchedulerConfig filled(SchedulerConfig config, const memory::HybridCache& cache) {
  config.pages_max = cache.positions_max() / config.page_tokens;
  return config;
}

}  // namespace

VirtualServer::VirtualServer(const VirtualServerConfig& config, DeviceClock& clock,
                             AnswerSource answers, VirtualServerSink& sink)
    : config_(config),
      cache_(memory::make_cache(config.cache)),
      scheduler_(filled(config.scheduler, *cache_)),
      worker_(std::move(answers), config.speculation),
      clock_(clock),
      sink_(sink) {
  VERIFY(config.scheduler.page_tokens == config.cache.tree.page_tokens);
  if (!config_.check) return;
  moves_.emplace(cache_->move_geometry(), true);
  scheduler_.moves().listen([this](const memory::MoveRecord& record) {
    VERIFY(!moves_->take(record).has_value());
  });
}

void VirtualServer::settle() {
  do {
    while (!events_.empty()) {
      do {
        SchedulerEvent event = std::move(events_.front());
        events_.pop_front();
        scheduler_.absorb(std::move(event), outputs_);
      } while (!events_.empty());
      scheduler_.plan(now_ns_ / 1000, outputs_);
      if (config_.check) scheduler_.check();
      dispatch(outputs_);
    }
  } while (start_plan() || finish_plans());
}

// The cache manager answers before anybody else speaks, in one reply for a run of requests.
void VirtualServer::dispatch(std::vector<SchedulerOutput>& outputs) {
  std::vector<SchedulerOutput> batch = std::exchange(outputs, {});
  for (SchedulerOutput& output : batch) {
    if (auto* plan = std::get_if<StepPlan>(&output)) {
      plans_.push_back(std::move(*plan));
    } else if (const auto* request = std::get_if<memory::CacheRequest>(&output)) {
      ask_cache(*request);
    } else {
      sink_.on_event(now_ns_, std::get<SessionEvent>(output));
    }
  }
  if (!reply_.empty()) events_.push_back(std::exchange(reply_, {}));
  batch.clear();
  if (outputs.empty()) outputs = std::move(batch);  // its memory is used again
}

void VirtualServer::ask_cache(const memory::CacheRequest& request) {
  const size_t before = reply_.answers.size();
  cache_->handle(request, reply_);
  if (config_.check) cache_->check();
  for (size_t i = before; i < reply_.answers.size(); ++i) {
    const auto* opened = std::get_if<memory::Opened>(&reply_.answers[i]);
    if (opened == nullptr) continue;
    const auto& open = std::get<memory::Open>(request);
    sink_.on_hit(now_ns_, {opened->sequence, static_cast<uint32_t>(open.key.elements.size()),
                           opened->shared, opened->position});
  }
}

// False: the device is busy, or nothing waits for it.
bool VirtualServer::start_plan() {
  if (plans_.empty() || free_ns_ > now_ns_) return false;
  const StepPlan plan = std::move(plans_.front());
  plans_.pop_front();
  ModelledWorker::Outcome outcome = worker_.run(plan);
  outcome.work.more_waits = !plans_.empty();
  const DeviceTimes times = clock_.start(outcome.work, now_ns_);
  VERIFY(times.free_ns >= now_ns_ && times.done_ns >= times.free_ns);
  VERIFY(running_.empty() || times.done_ns >= running_.back().done_ns);
  free_ns_ = times.free_ns;
  running_.push_back({now_ns_, times.done_ns, std::move(outcome.result), outcome.work.forward});
  return true;
}

// Those whose time is over. False: there was none.
bool VirtualServer::finish_plans() {
  bool any = false;
  while (!running_.empty() && running_.front().done_ns <= now_ns_) {
    any = true;
    Running done = std::move(running_.front());
    running_.pop_front();
    if (!done.result) continue;
    sink_.on_step(done.begin_ns, now_ns_, done.shape);
    done.result->start_ns = done.begin_ns;
    done.result->end_ns = now_ns_;
    events_.push_back(std::move(*done.result));
  }
  return any;
}

std::optional<uint64_t> VirtualServer::next_ns() const {
  std::optional<uint64_t> next;
  const auto at_most = [&](uint64_t at_ns) { next = next ? std::min(*next, at_ns) : at_ns; };
  if (!running_.empty()) at_most(running_.front().done_ns);
  if (!plans_.empty()) at_most(free_ns_);
  if (const auto deadline = scheduler_.next_deadline_us()) at_most(*deadline * 1000);
  return next;
}

void VirtualServer::advance(uint64_t to_ns) {
  VERIFY(to_ns >= now_ns_);
  now_ns_ = to_ns;
  finish_plans();
  const auto deadline = scheduler_.next_deadline_us();
  if (deadline && *deadline * 1000 <= now_ns_) events_.push_back(Tick{});
  settle();
}

void VirtualServer::drain() {
  settle();
  while (const auto next = next_ns()) advance(*next);
  if (config_.check) {
    VERIFY(idle());
    VERIFY(moves_->finish().empty());
  }
}

}  // namespace runtime
