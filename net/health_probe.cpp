#include "net/health_probe.hpp"

#include <limits>

namespace net {
namespace {

class HealthAnswer final : public Answer {
 public:
  void stream(const actors::SinkEvent&, std::vector<std::string>&) override {}
  void collect(const actors::SinkEvent&) override {}
  std::string body() override { return R"({"status":"ok"})"; }
};

}  // namespace

kernels::Result<ParsedRequest> make_health_probe(std::string_view, const actors::Service&) {
  ParsedRequest probe;
  probe.generate.rid = "health-probe";
  probe.generate.prompts.emplace_back(
      std::vector<runtime::TokenId>{0});  // every vocabulary has a token 0
  probe.generate.max_tokens = 1;
  probe.generate.sampling.temperature = 0;
  probe.generate.sampling.ignore_eos = true;
  probe.generate.priority =
      std::numeric_limits<int32_t>::max();  // measures the engine, not the queue
  probe.answer = std::make_unique<HealthAnswer>();
  return probe;
}

Response judge_probe(const kernels::Error& error, uint64_t steps, const HttpLimits& limits) {
  const bool waits_its_turn = error.code == kernels::ErrorCode::kTimeout && steps > 0;
  if (error.code != kernels::ErrorCode::kFull && !waits_its_turn) {
    return error_response(error, 503, limits);
  }
  Response busy;
  busy.body = R"({"status":"busy"})";
  return busy;
}

}  // namespace net
