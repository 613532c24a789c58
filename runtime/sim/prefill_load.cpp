#include "runtime/sim/prefill_load.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/sim/pipeline_clock.hpp"

namespace runtime {
namespace {

struct Prompt {
  double at_us = 0, sent_us = 0;  // at_us: when it may enter, or when its answer is out
  bool operator>(const Prompt& other) const {
    return at_us != other.at_us ? at_us > other.at_us : sent_us > other.sent_us;
  }
};
using Soonest = std::priority_queue<Prompt, std::vector<Prompt>, std::greater<>>;

class ClosedLoop {
 public:
  ClosedLoop(const StepModel& model, const PrefillLoad& load)
      : load_(load), pipeline_(model), left_(std::max<uint64_t>(96, uint64_t{10} * load.clients)) {
    VERIFY(load.clients > 0 && load.prompt_tokens > 0 && load.prompt_tokens <= load.batch_tokens);
  }

  PrefillRate run() {
    for (uint32_t i = 0; i < load_.clients; ++i) send(0);
    while (!waiting_.empty() || !running_.empty()) {
      // Answers that are out before the next batch could start bring new prompts first.
      while (!running_.empty() && (waiting_.empty() || running_.top().at_us <= start_us())) {
        const double answered_us = running_.top().at_us;
        running_.pop();
        send(answered_us);
      }
      if (!waiting_.empty()) start_batch();
    }
    return rate();
  }

 private:
  void send(double now_us) {
    if (left_ == 0) return;
    --left_;
    tokenizer_us_ = std::max(tokenizer_us_, now_us) + load_.arrival_us;
    waiting_.push({tokenizer_us_, now_us});
  }
  double start_us() const { return std::max(waiting_.top().at_us, pipeline_.next_entry_us()); }

  void start_batch() {
    const double now_us = start_us();
    StepShape shape;
    std::vector<double> sent;
    while (!waiting_.empty() && waiting_.top().at_us <= now_us &&
           shape.prefill_tokens + load_.prompt_tokens <= load_.batch_tokens) {
      shape.add_prefill(0, load_.prompt_tokens);
      sent.push_back(waiting_.top().sent_us);
      waiting_.pop();
    }
    const double done_us = pipeline_.enter(shape, now_us, !waiting_.empty());
    for (const double sent_us : sent) {
      running_.push({done_us, sent_us});
      answers_.push_back({done_us, sent_us});
    }
  }

  PrefillRate rate() {
    const size_t quarter = answers_.size() / 4;
    const size_t first = quarter, last = answers_.size() - 1 - quarter;
    PrefillRate rate;
    const double span_us = answers_[last].at_us - answers_[first].at_us;
    rate.tokens_per_s = static_cast<double>(last - first) *
                        static_cast<double>(load_.prompt_tokens) / span_us * 1e6;
    for (size_t i = first; i <= last; ++i)
      rate.answer_us += answers_[i].at_us - answers_[i].sent_us;
    rate.answer_us /= static_cast<double>(last - first + 1);
    return rate;
  }

  const PrefillLoad& load_;
  PipelineClock pipeline_;
  uint64_t left_;  // prompts not sent yet
  double tokenizer_us_ = 0;
  Soonest waiting_, running_;
  std::vector<Prompt> answers_;  // ascending: a pipeline keeps the order
};

}  // namespace

PrefillRate prefill_rate(const StepModel& model, const PrefillLoad& load) {
  return ClosedLoop(model, load).run();
}

}  // namespace runtime
