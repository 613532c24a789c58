// CPU time of scheduler core + cache core per step, with every row decoding: what the target of 50
// us per step is about. Prints one line per row count. The worker is an echo: it answers each
// planned row with token 5.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "kernels/base/process_cpu.hpp"
#include "runtime/scheduler.hpp"
#include "tests/support/small_cache.hpp"

namespace {

double cpu_us() { return 1e6 * kernels::process_cpu_seconds(); }

runtime::StepResult echo(const runtime::Forward& forward) {
  runtime::StepResult result;
  result.step = forward.step;
  result.rows.reserve(forward.rows.size());
  for (const runtime::PlanRow& row : forward.rows) {
    runtime::RowResult& answer = result.rows.emplace_back();
    answer.sequence = row.sequence;
    if (!row.sample) continue;
    answer.token = 5;
    answer.token_position = row.position + row.count;
  }
  return result;
}

class Loop {
 public:
  Loop(const runtime::SchedulerConfig& config, memory::HybridCache& cache)
      : scheduler_(config), cache_(cache) {}

  // Time spent in the two cores; building results and dropping plans is the worker's.
  void event(runtime::SchedulerEvent event) {
    const double before = cpu_us();
    scheduler_.handle(std::move(event), 0, out_);
    for (size_t i = 0; i < out_.size(); ++i) {
      if (auto* request = std::get_if<memory::CacheRequest>(&out_[i])) {
        memory::CacheReply reply;
        cache_.handle(memory::CacheRequest(std::move(*request)), reply);
        if (!reply.empty())
          scheduler_.handle(std::move(reply), 0, out_);
      }
    }
    spent_us += cpu_us() - before;
    for (runtime::SchedulerOutput& output : out_) {
      if (auto* plan = std::get_if<runtime::StepPlan>(&output)) keep(*plan);
      if (auto* session = std::get_if<runtime::SessionEvent>(&output)) {
        tokens += std::holds_alternative<runtime::SequenceToken>(*session) ? 1u : 0u;
      }
    }
    out_.clear();
  }
  bool step() {
    if (results_.empty()) return false;
    runtime::StepResult result = std::move(results_.front());
    results_.pop_front();
    event(std::move(result));
    return true;
  }
  bool idle() const { return scheduler_.idle(); }

  double spent_us = 0;
  uint64_t tokens = 0;

 private:
  void keep(const runtime::StepPlan& plan) {
    if (plan.commands.empty()) return;
    if (const auto* forward = std::get_if<runtime::Forward>(&plan.commands.back()))
      results_.push_back(echo(*forward));
  }
  runtime::Scheduler scheduler_;
  memory::HybridCache& cache_;
  std::vector<runtime::SchedulerOutput> out_;
  std::deque<runtime::StepResult> results_;
};

void measure(uint32_t rows) {
  constexpr uint32_t kOutput = 2000, kPrompt = 32, kPageTokens = 64;
  const uint32_t pages = rows * ((kOutput + kPrompt) / kPageTokens + 2);
  memory::HybridCache cache =
      support::make_small_cache({.slots = 3 * rows, .pages = pages, .unified = true});
  runtime::SchedulerConfig config;
  config.context_length = kOutput + kPrompt;
  config.page_tokens = kPageTokens;
  config.max_running = rows;
  config.pages_max = pages;
  Loop loop(config, cache);
  for (uint32_t i = 0; i < rows; ++i) {
    runtime::NewSequence sequence;
    sequence.sequence = {i + 1};
    sequence.prompt = std::vector<runtime::TokenId>(kPrompt, 7);
    sequence.max_tokens = kOutput;
    loop.event(runtime::Submit{{i + 1}, {sequence}, 0, 0});
  }
  while (loop.tokens < uint64_t{rows} * 10 && loop.step()) {
  }
  std::vector<double> steps;
  while (true) {
    loop.spent_us = 0;
    if (!loop.step()) break;
    steps.push_back(loop.spent_us);
  }
  if (!loop.idle() || loop.tokens != uint64_t{rows} * kOutput || steps.empty()) {
    std::fprintf(stderr, "wrong answer: %llu tokens\n",
                 static_cast<unsigned long long>(loop.tokens));
    std::exit(1);
  }
  double sum = 0;
  for (const double us : steps) sum += us;
  std::sort(steps.begin(), steps.end());
  std::printf("%4u rows: %6.1f us per step (mean), %6.1f p50, %6.1f p99, over %zu steps\n", rows,
              sum / static_cast<double>(steps.size()), steps[steps.size() / 2],
              steps[steps.size() * 99 / 100], steps.size());
}

}  // namespace

int main() {
  for (const uint32_t rows : {1u, 16u, 64u, 256u}) measure(rows);
  return 0;
}
