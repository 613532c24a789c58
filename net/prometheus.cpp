#include "net/prometheus.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace net {
namespace {

constexpr std::string_view kPrefix = "sluice:";
constexpr double kNsPerSecond = 1e9;
constexpr double kBytesPerGb = 1024.0 * 1024.0 * 1024.0;

std::string number(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr};
}

std::string escaped(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') value.push_back('\\');
    value += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return value;
}

class Writer {
 public:
  explicit Writer(const std::string& model_name)
      : labels_("model_name=\"" + escaped(model_name) + "\"") {}

  void counter(std::string_view name, std::string_view help, double value) {
    scalar(name, "counter", help, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    scalar(name, "gauge", help, value);
  }

  void histogram(std::string_view name, std::string_view help, const actors::Histogram& data) {
    describe(name, "histogram", help);
    const std::string base(name);
    uint64_t below = 0;  // buckets are cumulative
    for (size_t i = 0; i <= data.bounds.size(); ++i) {
      below += i < data.counts.size() ? data.counts[i] : 0;
      const std::string bound = i < data.bounds.size() ? number(data.bounds[i]) : "+Inf";
      sample(base + "_bucket", ",le=\"" + bound + "\"", static_cast<double>(below));
    }
    sample(base + "_sum", "", data.sum);
    sample(base + "_count", "", static_cast<double>(below));
  }

  void describe(std::string_view name, std::string_view type, std::string_view help) {
    text_.append("# HELP ").append(kPrefix).append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(kPrefix).append(name).append(" ").append(type).append("\n");
  }
  void sample(std::string_view name, const std::string& more_labels, double value) {
    text_.append(kPrefix).append(name).append("{").append(labels_).append(more_labels).append("} ");
    text_.append(number(value)).append("\n");
  }
  std::string take() { return std::move(text_); }

 private:
  void scalar(std::string_view name, std::string_view type, std::string_view help, double value) {
    describe(name, type, help);
    sample(name, "", value);
  }

  const std::string labels_;
  std::string text_;
};

double usage(const memory::KindOwners& kind) {
  return kind.total == 0 ? 0.0 : static_cast<double>(kind.held) / kind.total;
}

void write_counters(Writer& out, const actors::ServiceMetrics& engine) {
  const auto count = [](uint64_t value) { return static_cast<double>(value); };
  const runtime::SchedulerStats& s = engine.scheduler;
  out.counter("prompt_tokens_total", "Prompt tokens processed.", count(s.prompt_tokens_total));
  out.counter("generation_tokens_total", "Tokens generated.", count(s.generation_tokens_total));
  out.counter("num_requests_total", "Requests that reached the scheduler.",
              count(s.requests_total));
  out.counter("num_aborted_requests_total", "Requests aborted.", count(s.aborted_total));
  out.counter("num_retracted_requests_total", "Sequences retracted under memory pressure.",
              count(s.retracted_total));
  out.counter("num_rejected_requests_total", "Requests refused because the queue was full.",
              count(engine.rejected_total));
  out.counter("prefix_lookup_tokens_total", "Prompt tokens looked up in the prefix cache.",
              count(s.looked_up_tokens_total));
  out.counter("prefix_kv_hit_tokens_total", "Of these, tokens whose KV was cached.",
              count(s.kv_hit_tokens_total));
  out.counter("cached_tokens_total", "Of these, tokens whose state was restored: not computed.",
              count(s.state_hit_tokens_total));
  out.counter("recomputed_tokens_total",
              "Tokens computed again: after a retraction, or between a restored state and the end "
              "of the cached KV.",
              count(s.recomputed_tokens_total));
  out.counter("snapshots_total", "States saved inside a forward.", count(s.snapshots_total));
  out.counter("snapshots_skipped_total", "States worth saving that found no slot.",
              count(s.snapshots_skipped_total));
  out.counter("donations_total", "Saved states given to the prefix cache.",
              count(s.donations_total));
  out.counter("block_moves_total", "States and pages moved to keep the free memory in one piece.",
              count(s.moves_total));
  const memory::CacheCounters& cache = engine.cache;
  const auto by_kind = [&](uint64_t states, uint64_t pages, const char* name, const char* help) {
    out.describe(name, "counter", help);
    out.sample(name, ",kind=\"state\"", count(states));
    out.sample(name, ",kind=\"page\"", count(pages));
  };
  const auto staged = [&](const uint64_t(&values)[2], const char* name, const char* help) {
    by_kind(values[0], values[1], name, help);
  };
  constexpr auto kRoom = static_cast<size_t>(memory::EvictionReason::kRoom);
  by_kind(cache.evicted_slots[kRoom], cache.evicted_pages[kRoom], "evicted_total",
          "Cached blocks given up to make room.");
  staged(cache.staged_out, "host_staged_out_total", "Blocks copied to host memory.");
  staged(cache.staged_in, "host_staged_in_total", "Blocks copied back to the device.");
  staged(cache.host_evicted, "host_evicted_total", "Blocks that left host memory for others.");
  out.counter("host_hits_total", "Admissions that began from a state in host memory.",
              count(cache.host_restored));
  out.counter("host_hit_tokens_total", "Tokens that only host memory spared them.",
              count(cache.host_positions));
  out.counter("host_resumed_total", "Retracted sequences that went on from host memory.",
              count(s.host_resumed_total));
  out.counter("host_checksum_failures_total",
              "Blocks in host memory whose bytes had changed: dropped, never used.",
              count(cache.host_lost));
  out.counter("steps_total", "Engine steps.", count(s.steps_total));
  out.counter("ghost_rows_total", "Rows computed for a sequence that had just ended.",
              count(s.ghost_rows_total));
  out.counter("worker_busy_seconds_total", "Time the worker spent in steps.",
              count(engine.worker_busy_ns) / kNsPerSecond);
  out.counter("worker_idle_seconds_total",
              "Time the worker waited between steps while work was left.",
              count(engine.worker_idle_ns) / kNsPerSecond);
}

void write_gauges(Writer& out, const actors::ServiceMetrics& engine,
                  const actors::ServiceInfo& info) {
  const auto& [states, pages, host] = engine.pools;
  const double page_tokens = info.page_tokens;
  const double total_tokens = pages.total * page_tokens;
  out.gauge("num_running_reqs", "Sequences running.", engine.scheduler.running);
  out.gauge("num_queue_reqs", "Sequences waiting.", engine.scheduler.queued);
  out.gauge("num_open_reqs", "Requests accepted and not yet answered.", engine.open_requests);
  out.gauge("gen_throughput", "Generated tokens per second, lately.", engine.gen_throughput);
  out.gauge("num_used_tokens", "KV rows in held pages.", pages.held * page_tokens);
  out.gauge("token_usage", "Fullest pool, 0 to 1.", std::max(usage(states), usage(pages)));
  out.gauge("full_token_usage", "KV pages held, 0 to 1.", usage(pages));
  out.gauge("mamba_usage", "State slots held, 0 to 1.", usage(states));
  out.gauge("kv_available_tokens", "KV rows in free pages.", pages.free * page_tokens);
  out.gauge("kv_evictable_tokens", "KV rows in cached pages nobody uses.",
            pages.evictable * page_tokens);
  out.gauge("kv_used_tokens", "KV rows in held pages.", pages.held * page_tokens);
  out.gauge("mamba_available_tokens", "State slots free.", states.free);
  out.gauge("mamba_used_tokens", "State slots held.", states.held);
  out.gauge("mamba_evictable_tokens", "State slots cached that nobody uses.", states.evictable);
  out.gauge("host_cache_bytes", "Bytes of states and pages in host memory.",
            static_cast<double>(host.bytes));
  out.gauge("host_cache_max_bytes", "Bytes that host memory may hold.",
            static_cast<double>(host.bytes_max));
  out.gauge("host_cache_states", "States in host memory.", host.states);
  out.gauge("host_cache_pages", "KV pages in host memory.", host.pages);
  out.gauge("max_total_num_tokens", "KV rows in all pages.", total_tokens);
  out.gauge("page_size", "Tokens of one KV page.", page_tokens);
  out.gauge("num_pages", "KV pages held, cached, or with room in what is free now.", pages.total);
  out.gauge("num_states", "State slots, likewise.", states.total);
  out.gauge("num_pages_max", "KV pages that the arena holds beside nothing else.",
            static_cast<double>(info.pages_max));
  out.gauge("num_states_max", "State slots, likewise.", static_cast<double>(info.states_max));
  out.gauge("context_len", "Longest sequence, prompt and output.", info.context_length);
  out.gauge("weight_memory_usage_gb", "Weights, GiB.",
            static_cast<double>(info.weight_bytes) / kBytesPerGb);
  out.gauge("kv_cache_memory_usage_gb", "KV pages, GiB.",
            pages.total * static_cast<double>(info.page_bytes) / kBytesPerGb);
}

}  // namespace

std::string prometheus_text(const actors::ServiceMetrics& engine, const actors::ServiceInfo& info,
                            const HttpMetrics& http) {
  Writer out(info.model_name);
  write_counters(out, engine);
  write_gauges(out, engine, info);
  out.histogram("time_to_first_token_seconds", "From arrival to the first token.",
                engine.ttft_seconds);
  out.histogram("inter_token_latency_seconds", "Between tokens of one sequence.",
                engine.itl_seconds);
  out.histogram("e2e_request_latency_seconds", "From arrival to the end of the answer.",
                engine.e2e_seconds);
  out.histogram("queue_time_seconds", "From arrival to admission.", engine.queue_seconds);
  out.histogram("worker_gap_seconds", "Worker idle between two steps while requests run.",
                engine.worker_gap_seconds);
  out.gauge("http_connections", "Open HTTP connections.", http.connections);
  out.counter("http_refused_connections_total", "Connections refused over the limit.",
              static_cast<double>(http.refused_connections));
  out.describe("http_responses_total", "counter", "HTTP answers by class of status.");
  for (size_t i = 1; i < http.responses.size(); ++i) {
    out.sample("http_responses_total", ",code=\"" + std::to_string(i) + "xx\"",
               static_cast<double>(http.responses[i]));
  }
  return out.take();
}

}  // namespace net
