// An engine whose requests are recorded: passes everything on, and looks at what sinks are told.
#pragma once

#include "actors/service.hpp"
#include "net/trace/record_file.hpp"

namespace net {

// Requests that ended before they were accepted leave no record. `file` must outlive `engine`, who
// holds the sinks; both outlive this.
class RecordingService final : public actors::Service {
 public:
  RecordingService(actors::Service& engine, RecordFile& file) : engine_(engine), file_(file) {}

  kernels::Result<runtime::RequestId> submit(runtime::GenerateRequest request,
                                             actors::Sink sink) override;

  actors::ServicePhase phase() const override { return engine_.phase(); }
  bool ready() const override { return engine_.ready(); }
  actors::ServiceInfo info() const override { return engine_.info(); }
  void abort(runtime::RequestId request) override { engine_.abort(request); }
  uint32_t abort_by_rid(const std::string& rid) override { return engine_.abort_by_rid(rid); }
  uint32_t abort_all() override { return engine_.abort_all(); }
  actors::ServiceMetrics metrics() override { return engine_.metrics(); }
  bool flush_cache() override { return engine_.flush_cache(); }
  kernels::Result<memory::CacheReport> cache_report(const memory::ReportQuery& query) override {
    return engine_.cache_report(query);
  }
  kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) override {
    return engine_.moves(query);
  }
  kernels::Result<memory::NodeOutcome> change_node(const memory::NodeOrder& order) override {
    return engine_.change_node(order);
  }
  std::vector<actors::NamedRequest> named_requests() override { return engine_.named_requests(); }
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const override {
    return engine_.tokenizer();
  }

 private:
  actors::Service& engine_;
  RecordFile& file_;
};

}  // namespace net
