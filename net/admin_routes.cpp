#include "net/admin_routes.hpp"

#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdio>

#include "net/admin_protocol.hpp"
#include "net/json_fields.hpp"
#include "net/prometheus.hpp"
#include "net/server_context.hpp"
#include "net/server_state.hpp"

namespace net {
namespace {

namespace json = boost::json;

Response ok(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

Response answer(const kernels::Result<std::string>& body, const ServerContext& context) {
  return body ? ok(*body) : error_response(body.error(), context.config.limits);
}

// "moonshot%2Ftiny" -> "moonshot/tiny"; a '%' without two digits stays.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16).ptr == &text[i + 1] + 2;
    decoded.push_back(escape ? static_cast<char>(value) : text[i]);
    if (escape) i += 2;
  }
  return decoded;
}

}  // namespace

Response models(ServerContext& context, const RequestView&) {
  return ok(models_json(context.service.info()));
}

Response model(ServerContext& context, const RequestView& request) {
  const std::string id = percent_decoded(request.rest);
  const actors::ServiceInfo info = context.service.info();
  if (id == info.model_name) return ok(model_json(info, id));
  const std::string message =
      "there is no model \"" + id + "\" here, only \"" + info.model_name + "\"";
  return error_response({kernels::ErrorCode::kNotFound, message, "model"}, context.config.limits);
}

Response tokenize(ServerContext& context, const RequestView& request) {
  return answer(answer_tokenize(request.body, context.service, request.keep_going), context);
}

Response detokenize(ServerContext& context, const RequestView& request) {
  return answer(answer_detokenize(request.body, context.service), context);
}

Response health(ServerContext& context, const RequestView&) {
  const ServerState state = state_of(context);
  if (state.ready()) return ok(R"({"status":"ok"})");
  return error_response(unavailable(state), context.config.limits);
}

Response metrics(ServerContext& context, const RequestView&) {
  HttpMetrics http;
  http.connections = context.connections.count();
  http.refused_connections = context.counters.refused_connections;
  for (size_t i = 0; i < http.responses.size(); ++i)
    http.responses[i] = context.counters.responses[i];
  Response response = ok(prometheus_text(context.service.metrics(), context.service.info(), http));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Response server_info(ServerContext& context, const RequestView&) {
  const actors::ServiceInfo info = context.service.info();
  const actors::ServiceMetrics now = context.service.metrics();
  const ServerState state = state_of(context);
  const uint64_t page_tokens = info.page_tokens;
  json::object body{
      {"model_path", info.model_path},
      {"served_model_name", info.model_name},
      {"status", state.word},
      {"status_detail", state.detail},
      {"device", info.device},
      {"kernel_target", info.kernel_target},
      {"threads", info.threads},
      {"kv_cache_dtype", info.kv_dtype},
      {"context_length", info.context_length},
      {"vocab_size", info.vocab_size},
      {"page_size", info.page_tokens},
      {"chunked_prefill_size", info.chunk_tokens},
      {"max_running_requests", info.max_running},
      {"max_queued_requests", info.max_queue},
      {"max_total_num_tokens", now.pools.pages.total * page_tokens},
      {"weight_bytes", info.weight_bytes},
      {"arena_bytes", info.arena_bytes},
      {"state_bytes", info.state_bytes},
      {"page_bytes", info.page_bytes},
      {"states_max", info.states_max},
      {"pages_max", info.pages_max},
      {"state_slots", now.pools.states.total},
      {"kv_pages", now.pools.pages.total},
      {"host_cache", json::object{{"max_bytes", now.pools.host.bytes_max},
                                  {"bytes", now.pools.host.bytes},
                                  {"states", now.pools.host.states},
                                  {"kv_pages", now.pools.host.pages},
                                  {"hits", now.cache.host_restored},
                                  {"checksum_failures", now.cache.host_lost},
                                  {"note", info.host_cache_note}}},
      {"weights_digest", hexadecimal(info.weights_digest)},
      {"default_reasoning_effort", info.default_reasoning_effort},
      {"has_tokenizer", info.has_tokenizer},
      {"internal_states", json::array{json::object{{"last_gen_throughput", now.gen_throughput},
                                                   {"num_running_reqs", now.scheduler.running},
                                                   {"num_queue_reqs", now.scheduler.queued}}}},
  };
  return ok(json::serialize(body));
}

Response model_info(ServerContext& context, const RequestView&) {
  const actors::ServiceInfo info = context.service.info();
  return ok(
      json::serialize(json::object{{"model_path", info.model_path},
                                   {"tokenizer_path", info.has_tokenizer ? info.model_path : ""},
                                   {"is_generation", true},
                                   {"context_length", info.context_length},
                                   {"vocab_size", info.vocab_size}}));
}

Response abort_request(ServerContext& context, const RequestView& request) {
  JsonBody body(request.body);
  Fields fields = body.fields();
  const auto rid = fields.string("rid");
  const bool all = fields.boolean("abort_all").value_or(false);
  if (!all && (!rid || rid->empty()))
    fields.fail("rid", "must name a request, or abort_all must be true");
  if (body.error()) return error_response(*body.error(), context.config.limits);
  const uint32_t aborted = all ? context.service.abort_all() : context.service.abort_by_rid(*rid);
  return ok(json::serialize(json::object{{"success", true}, {"aborted", aborted}}));
}

Response admin(ServerContext& context, const RequestView& request) {
  const auto source = make_live_source(context.service);
  AdminReply reply = answer_admin_line(request.body, *source);
  Response response = ok(std::move(reply.line));
  response.status = reply.status;
  return response;
}

Response flush_cache(ServerContext& context, const RequestView&) {
  if (context.service.flush_cache())
    return ok(R"({"success":true,"message":"the cache is empty"})");
  return error_response(kernels::invalid("the cache cannot be flushed while requests run"),
                        context.config.limits);
}

}  // namespace net
