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
  probe.generate.rid = kHealthProbeId;
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

GenerationTerms probe_terms(ServerContext& context) {
  const HttpLimits& limits = context.config.limits;
  const auto steps = [&context] { return context.service.metrics().scheduler.steps_total; };
  return {after(limits.health_generate_timeout),
          [&limits, steps, before = steps()](const kernels::Error& error) {
            const bool timeout = error.code == kernels::ErrorCode::kTimeout;
            const bool busy =
                error.code == kernels::ErrorCode::kFull || (timeout && steps() > before);
            if (!busy) return error_response(error, 503, limits);
            Response response;
            response.body = R"({"status":"busy"})";
            return response;
          }};
}

}  // namespace net
