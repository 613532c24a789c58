#include "net/recording_service.hpp"

#include <memory>
#include <utility>

#include "net/health_probe.hpp"

namespace net {
namespace {

const char* finish_word(const actors::ChoiceDone& done) {
  if (done.tool_calls) return "tool_calls";
  return done.reason == runtime::FinishReason::kLength ? "length" : "stop";
}

// One request under way: what its sink is told, by one thread at a time.
class Recording {
 public:
  Recording(const runtime::GenerateRequest& asked, RecordFile& file) : file_(file) {
    request_.asked = asked;
    request_.arrival_s = file.now_s();
  }

  void see(const actors::SinkEvent& event) {
    std::visit([this](const auto& seen) { on(seen); }, event);
  }

 private:
  void on(const actors::Accepted& event) {
    request_.prompts = event.prompts;
    request_.choices.resize(event.prompts.size() * request_.asked.n);
  }
  void on(const actors::Delta& event) {
    if (event.token_ids.empty()) return;
    if (request_.first_token_s == 0) request_.first_token_s = file_.now_s();
    auto& ids = request_.choices[event.choice].ids;
    ids.insert(ids.end(), event.token_ids.begin(), event.token_ids.end());
  }
  void on(const actors::ChoiceDone& event) {
    auto& choice = request_.choices[event.choice];
    choice.tokens = event.output_tokens;
    choice.finish = finish_word(event);
  }
  void on(const actors::Failed& event) {
    const bool engine = event.error.code == kernels::ErrorCode::kInternal;
    end(engine ? "error" : "abort");
  }
  void on(const actors::Done& event) {
    request_.cached_tokens = event.cached_tokens;
    end("stop");
  }

  // Choices that were under way end so.
  void end(const char* finish) {
    if (request_.prompts.empty()) return;  // never accepted
    request_.end_s = file_.now_s();
    for (auto& choice : request_.choices) {
      if (!choice.finish.empty()) continue;
      choice.finish = finish;
      choice.tokens = static_cast<uint32_t>(choice.ids.size());
    }
    file_.take(std::move(request_));
  }

  RecordFile& file_;
  FinishedRequest request_;
};

}  // namespace

kernels::Result<runtime::RequestId> RecordingService::submit(runtime::GenerateRequest request,
                                                             actors::Sink sink) {
  if (request.rid == kHealthProbeId) return engine_.submit(std::move(request), std::move(sink));
  // Shared only because a std::function must be copyable.
  auto recording = std::make_shared<Recording>(request, file_);
  return engine_.submit(std::move(request), [recording = std::move(recording),
                                             sink = std::move(sink)](actors::SinkEvent event) {
    recording->see(event);
    return sink(std::move(event));
  });
}

}  // namespace net
