#include "net/replay/live_run.hpp"

#include <stdexcept>

#include "net/replay/http_stream.hpp"
#include "net/replay/live_replay.hpp"
#include "net/replay/server_facts.hpp"

namespace net {

namespace json = boost::json;

namespace {

bool made_up_prompts(const Trace& trace) {
  for (const TraceRequest& request : trace.requests)
    if (!request.text) return true;
  return false;
}

PromptOptions prompt_options(const Scenario& scenario, const Trace& trace,
                             const ServerFacts& facts) {
  PromptOptions options;
  options.block_tokens = scenario.trace.block_tokens;
  options.seed = scenario.seed;
  const LiveServer& live = scenario.live;
  if (live.text || live.chat) {
    options.vocabulary = kWords;
    return options;
  }
  const uint32_t vocabulary = live.vocabulary != 0 ? live.vocabulary : facts.vocabulary;
  if (vocabulary != 0) {
    options.vocabulary = vocabulary;
  } else if (made_up_prompts(trace) || options.block_tokens != 0) {
    throw std::invalid_argument(
        "live.vocabulary: the server does not say how many token ids it knows, and prompts are "
        "made of them; name a number, or let prompts be words (text = true)");
  }
  return options;
}

json::object server_json(const Scenario& scenario, const HttpTarget& target,
                         const ServerFacts& facts) {
  json::object out{{"url", target.address.url()}, {"model", facts.model}};
  out["prompts"] = scenario.live.chat ? "chat" : scenario.live.text ? "text" : "ids";
  for (const char* key :
       {"device", "kernel_target", "threads", "kv_cache_dtype", "page_size", "chunked_prefill_size",
        "max_running_requests", "arena_bytes", "state_bytes", "page_bytes", "weights_digest"}) {
    if (const json::value* value = facts.info.if_contains(key)) out[key] = *value;
  }
  return out;
}

}  // namespace

json::object run_live(const Scenario& scenario, const Trace& trace, std::ostream* progress) {
  const LiveServer& live = scenario.live;
  if (live.url.empty())
    throw std::invalid_argument("live.url: names no server; expected http://HOST:PORT");
  const std::chrono::milliseconds silence(static_cast<int64_t>(live.silence_s * 1000));
  const HttpTarget target = find_target(parse_address(live.url), live.api_key, silence);
  const ServerFacts facts = ask_server(target, live);
  const PromptSource prompts(trace, prompt_options(scenario, trace, facts));
  const LiveRequests requests(trace, prompts, {facts.model, live.text, live.chat, live.ignore_eos});
  const std::vector<uint32_t> sessions = select_sessions(trace, scenario.trace, scenario.seed);
  LiveReplay replay({scenario.pace, scenario.faults, scenario.slo, live.retries, facts.is_sluice},
                    target, trace, sessions, prompts, requests, progress);
  replay.run();
  json::object out;
  out["scenario"] = scenario.name;
  out["seed"] = scenario.seed;
  out["sessions"] = sessions.size();
  out["server"] = server_json(scenario, target, facts);
  for (auto& [key, value] : replay.result()) out[key] = value;
  return out;
}

}  // namespace net
