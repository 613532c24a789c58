// An engine for tests of net/: it answers what the test says, when the test says it, and remembers
// what it was asked.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/service.hpp"

namespace support {

// The events of a whole answer with one choice.
inline std::vector<actors::SinkEvent> whole_answer(const std::vector<std::string>& pieces,
                                                   bool chat = false) {
  std::vector<actors::SinkEvent> events;
  events.emplace_back(actors::Accepted{{{1, 2, 3}}});
  for (const auto& piece : pieces) {
    actors::Delta delta;
    delta.token_ids = {7};
    if (chat) {
      delta.chat = {runtime::ChatDelta{runtime::ChatDelta::Kind::kContent, piece, 0, ""}};
    } else {
      delta.text = piece;
    }
    events.emplace_back(std::move(delta));
  }
  actors::ChoiceDone done;
  done.output_tokens = static_cast<uint32_t>(pieces.size());
  events.emplace_back(done);
  events.emplace_back(actors::Done{3, 0, static_cast<uint32_t>(pieces.size())});
  return events;
}

class FakeService final : public actors::Service {
 public:
  struct Submitted {
    runtime::RequestId id;
    runtime::GenerateRequest request;
    actors::Sink sink;
  };

  // No tokenizer: token-id prompts only.
  explicit FakeService(std::shared_ptr<const runtime::Tokenizer> tokenizer = nullptr)
      : words(std::move(tokenizer)) {
    facts.has_tokenizer = words != nullptr;
    facts.model_name = "tiny";
    facts.model_path = "/models/tiny";
    facts.context_length = 4096;
    facts.vocab_size = 512;
    facts.page_tokens = 64;
  }

  // ---- what the test sets before requests arrive ----
  actors::ServiceInfo facts;
  actors::ServiceMetrics numbers;
  memory::CacheReport report;  // for consoles
  memory::MovePage log;
  std::vector<actors::NamedRequest> named;
  std::atomic<bool> is_ready{true};
  std::atomic<bool> may_flush{true};
  std::shared_ptr<const runtime::Tokenizer> words;
  std::function<void()> before_metrics, before_tokenizer;  // on the calling thread
  std::string failure;  // not empty: the engine is lost for this reason
  void refuse(std::optional<kernels::Error> error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }
  // Every later request gets these events before submit() returns.
  void answer_at_once(std::vector<actors::SinkEvent> events) {
    const std::lock_guard lock(mutex_);
    immediate_ = std::move(events);
  }

  // ---- what the test waits for; throws when it does not come ----
  Submitted next() {
    std::unique_lock lock(mutex_);
    wait(lock, "a request", [this] { return !submitted_.empty(); });
    Submitted first = std::move(submitted_.front());
    submitted_.pop_front();
    return first;
  }
  void wait_aborted(runtime::RequestId id) {
    std::unique_lock lock(mutex_);
    wait(lock, "an abort", [&] { return aborted_.count(id) != 0; });
  }
  bool was_aborted(runtime::RequestId id) const {
    const std::lock_guard lock(mutex_);
    return aborted_.count(id) != 0;
  }
  std::vector<std::string> aborted_rids() const {
    const std::lock_guard lock(mutex_);
    return aborted_rids_;
  }

  // ---- actors::Service ----
  actors::ServicePhase phase() const override {
    using Kind = actors::ServicePhase::Kind;
    if (!failure.empty()) return {Kind::kFailed, failure};
    return {is_ready ? Kind::kReady : Kind::kStarting, {}};
  }
  bool ready() const override { return is_ready; }
  actors::ServiceInfo info() const override { return facts; }
  kernels::Result<runtime::RequestId> submit(runtime::GenerateRequest request,
                                             actors::Sink sink) override {
    std::vector<actors::SinkEvent> events;
    runtime::RequestId id;
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) return *refusal_;
      id.value = ++last_id_;
      events = immediate_;
      if (events.empty()) submitted_.push_back({id, std::move(request), sink});
      changed_.notify_all();
    }
    for (auto& event : events) sink(std::move(event));
    return id;
  }
  void abort(runtime::RequestId request) override {
    const std::lock_guard lock(mutex_);
    aborted_.insert(request);
    changed_.notify_all();
  }
  uint32_t abort_by_rid(const std::string& rid) override {
    const std::lock_guard lock(mutex_);
    aborted_rids_.push_back(rid);
    return 2;
  }
  uint32_t abort_all() override { return 3; }
  actors::ServiceMetrics metrics() override {
    if (before_metrics) before_metrics();
    return numbers;
  }
  bool flush_cache() override { return may_flush; }
  kernels::Result<memory::CacheReport> cache_report(const memory::ReportQuery&) override {
    return report;
  }
  kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) override {
    memory::MovePage found = log;
    std::erase_if(found.records, [&](const memory::MoveRecord& record) {
      return record.number < query.from || !query.filter.matches(record);
    });
    if (found.records.size() > query.max) found.records.resize(query.max);
    return found;
  }
  kernels::Result<memory::NodeOutcome> change_node(const memory::NodeOrder& order) override {
    return memory::NodeOutcome{order.node, 1, 2, 1};
  }
  std::vector<actors::NamedRequest> named_requests() override { return named; }
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const override {
    if (before_tokenizer) before_tokenizer();
    return words;
  }

 private:
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const char* what, Condition condition) {
    if (!changed_.wait_for(lock, std::chrono::seconds(20), condition)) {
      throw std::runtime_error(std::string("the server did not bring ") + what);
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t last_id_ = 0;
  std::optional<kernels::Error> refusal_;
  std::vector<actors::SinkEvent> immediate_;
  std::deque<Submitted> submitted_;
  std::set<runtime::RequestId> aborted_;
  std::vector<std::string> aborted_rids_;
};

}  // namespace support
