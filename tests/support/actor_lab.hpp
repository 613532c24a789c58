// A whole System on one thread: CAF's testing scheduler, a clock that moves only when told, and a
// seed that chooses which actor runs next. Any order it picks is one that real threads could have
// produced.
#pragma once

#include <algorithm>
#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "actors/system_impl.hpp"
#include "runtime/trace.hpp"
#include "tests/support/tokenizer_directory.hpp"

namespace actors {

class SystemLab {
 public:
  SystemLab(const runtime::EngineConfig& config, ModelFactory factory, uint32_t seed = 0)
      : rng_(seed) {
    SystemOptions options;
    options.testing_scheduler = true;
    options.clock = [now = now_ns_] { return *now; };
    options.factory = std::move(factory);
    options.on_failure = [this](const std::string& reason) { losses_.push_back(reason); };
    system_ = System::start(config, std::move(options));
  }

  System& service() { return *system_; }
  System* operator->() { return system_.get(); }

  // Runs one message of one actor, chosen by the seed. False: nothing to do.
  bool step() {
    auto& jobs = system_->impl_->lab()->jobs;
    if (jobs.empty()) return false;
    std::swap(jobs[0], jobs[rng_() % jobs.size()]);
    *now_ns_ += 1000;  // work takes time: 1 us a message
    system_->impl_->lab()->run_once();
    return true;
  }
  void settle() {
    while (step()) {
    }
  }
  void advance(std::chrono::milliseconds time) {
    *now_ns_ += static_cast<uint64_t>(time.count()) * 1'000'000;
    system_->impl_->lab()->advance_time(time);
  }
  const std::vector<std::string>& losses() const { return losses_; }  // told by on_failure
  size_t timers() const { return system_->impl_->lab()->clock().schedule().size(); }
  uint32_t open() const { return system_->impl_->desk.open_count(); }
  std::mt19937& rng() { return rng_; }

  template <class Handle>
  void kill(const Handle& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::kill);
  }
  const SupervisorActor& supervisor() const { return system_->impl_->supervisor; }
  const GatewayActor& gateway() const { return system_->impl_->gateway; }

 private:
  std::shared_ptr<uint64_t> now_ns_ = std::make_shared<uint64_t>(1'000'000'000);
  std::mt19937 rng_;
  std::vector<std::string> losses_;
  std::unique_ptr<System> system_;
};

// What one sink received. Shared with the sink, so it outlives the request.
class Recorder {
 public:
  // refuse_after: how many events it takes before its client is gone.
  explicit Recorder(std::optional<size_t> refuse_after = {}) : log_(std::make_shared<Log>()) {
    log_->refuse_after = refuse_after;
  }

  Sink sink() const {
    return [log = log_](SinkEvent event) {
      const std::lock_guard lock(log->mutex);
      if (log->refused) log->called_after_refusal = true;
      if (log->refuse_after && log->events.size() >= *log->refuse_after) log->refused = true;
      if (log->refused && log->on_refusal) log->on_refusal();
      if (!log->refused) log->events.push_back(std::move(event));
      return !log->refused;
    };
  }
  void on_refusal(std::function<void()> call) { log_->on_refusal = std::move(call); }

  std::vector<SinkEvent> events() const {
    const std::lock_guard lock(log_->mutex);
    return log_->events;
  }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const SinkEvent& event : events()) {
      if (const auto* match = std::get_if<Event>(&event)) found.push_back(*match);
    }
    return found;
  }
  template <class Event>
  std::optional<Event> last() const {
    const auto found = all<Event>();
    return found.empty() ? std::nullopt : std::optional<Event>(found.back());
  }
  bool refused() const { return log_->refused; }
  bool ended() const { return last<Done>() || last<Failed>(); }

  std::string text(uint32_t choice = 0) const {
    std::string joined;
    for (const Delta& delta : all<Delta>()) {
      if (delta.choice == choice) joined += delta.text;
    }
    return joined;
  }
  std::vector<runtime::TokenId> ids(uint32_t choice = 0) const {
    std::vector<runtime::TokenId> joined;
    for (const Delta& delta : all<Delta>()) {
      if (delta.choice == choice)
        joined.insert(joined.end(), delta.token_ids.begin(), delta.token_ids.end());
    }
    return joined;
  }

  // Empty, or what breaks the protocol of service.hpp.
  std::string protocol_error(uint32_t choices) const {
    const auto all_events = events();
    if (log_->called_after_refusal) return "called after it refused";
    if (!refused() && !ended()) return "never ended";
    std::vector<bool> done(choices, false);
    bool accepted = false;
    for (size_t i = 0; i < all_events.size(); ++i) {
      const bool is_last = i + 1 == all_events.size();
      if (std::holds_alternative<Failed>(all_events[i]))
        return is_last ? "" : "something follows Failed";
      if (std::holds_alternative<Accepted>(all_events[i]) != (i == 0))
        return "Accepted is not first, or not alone";
      accepted = true;
      if (const auto* delta = std::get_if<Delta>(&all_events[i])) {
        if (done.at(delta->choice)) return "a delta follows its ChoiceDone";
      } else if (const auto* choice = std::get_if<ChoiceDone>(&all_events[i])) {
        if (done.at(choice->choice)) return "two ChoiceDone";
        done.at(choice->choice) = true;
      } else if (std::holds_alternative<Done>(all_events[i])) {
        if (!is_last) return "something follows Done";
        if (std::find(done.begin(), done.end(), false) != done.end())
          return "Done before every ChoiceDone";
      }
    }
    return accepted || refused() ? "" : "no event";
  }

 private:
  struct Log {
    std::mutex mutex;
    std::vector<SinkEvent> events;
    std::optional<size_t> refuse_after;
    std::function<void()> on_refusal;
    bool refused = false, called_after_refusal = false;
  };
  std::shared_ptr<Log> log_;
};

// Ids 0..255 are bytes. After a letter comes the next one, after z the end of the message; '!'
// spoils the logits, '#' breaks the engine, everything else is followed by a.
class AlphabetModel final : public runtime::Model {
 public:
  static constexpr runtime::TokenId kEnd = 258;  // <|end_of_msg|> of a 512-id tokenizer
  explicit AlphabetModel(uint32_t page_tokens) : page_tokens_(page_tokens) {}
  uint32_t vocab_size() const override { return 512; }
  runtime::CacheGeometry geometry() const override {
    return {64, uint64_t{8} * page_tokens_, page_tokens_};
  }
  uint64_t weight_bytes() const override { return 0; }
  void forward(const runtime::ForwardBatch& batch, const runtime::CacheMemory&) override {
    if (std::find(batch.tokens.begin(), batch.tokens.end(), '#') != batch.tokens.end())
      throw std::bad_alloc();
    wanted_.clear();
    for (const uint32_t row : batch.logit_rows) wanted_.push_back(batch.tokens[row]);
  }
  void logits(size_t first, size_t count, float* out) override {
    std::fill_n(out, count * vocab_size(), 0.0f);
    for (size_t i = 0; i < count; ++i, out += vocab_size()) {
      const runtime::TokenId token = wanted_.at(first + i);
      const bool letter = token >= 'a' && token < 'z';
      const runtime::TokenId next = letter ? token + 1 : (token == 'z' ? kEnd : 'a');
      out[next] = token == '!' ? std::numeric_limits<float>::quiet_NaN() : 30.0f;
    }
  }

 private:
  uint32_t page_tokens_;
  std::vector<runtime::TokenId> wanted_;
};

inline ModelFactory alphabet_factory(bool with_tokenizer = true) {
  return [with_tokenizer](kernels::Ops&, const runtime::ModelOptions& options) {
    LoadedModel loaded;
    loaded.model = std::make_unique<AlphabetModel>(options.page_tokens);
    if (with_tokenizer) loaded.tokenizer = support::byte_tokenizer();
    loaded.max_positions = 512;
    loaded.end_ids = {AlphabetModel::kEnd};
    return loaded;
  };
}

inline runtime::EngineConfig lab_config() {
  runtime::EngineConfig config;
  config.device = "null";
  config.threads = 1;
  config.memory_gb = 0.001;  // about 1 MiB
  config.page_tokens = 8;
  config.chunk_tokens = 64;
  config.max_running_requests = 4;
  config.max_queue = 4;
  config.check_moves = true;
  return config;
}

inline runtime::GenerateRequest ask(std::string prompt, std::optional<uint32_t> max_tokens = {}) {
  runtime::GenerateRequest request;
  request.rid = prompt;
  request.prompts = {runtime::Prompt(std::move(prompt))};
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

}  // namespace actors
