// What net/ may ask of the engine: plain functions and values, no CAF. Implemented by
// actors/system.cpp around the gateway actor; tests of net/ bring their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/histogram.hpp"
#include "kernels/base/result.hpp"
#include "memory/cache_report.hpp"
#include "memory/move_log.hpp"
#include "runtime/request.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/shared_tokens.hpp"
#include "runtime/tokenizer.hpp"
#include "runtime/xtml_parser.hpp"

namespace actors {

inline constexpr uint32_t kChoicesMax = 1024;  // of one request: prompts * n

// ---- what a request's sink receives, in this order: Accepted or Failed; then Delta*; then one
// ChoiceDone per choice; then Done ----
struct Accepted {  // the prompt is encoded and fits
  std::vector<runtime::SharedTokens> prompts;
};
struct Failed {  // ends the request (before or after Accepted)
  kernels::Error error;
};
struct Delta {  // new output of one choice; several may be joined by the receiver
  uint32_t choice = 0;
  std::vector<runtime::ChatDelta> chat;             // parse_chat
  std::string text;                                 // otherwise
  std::vector<runtime::TokenId> token_ids;          // generated ids that are part of this piece
  std::vector<runtime::PositionLogprobs> logprobs;  // one per token id, if asked
  std::vector<runtime::PositionLogprobs>
      prompt_logprobs;  // first delta of a choice only; positions 1 .. n-1
};
struct ChoiceDone {
  uint32_t choice = 0;
  runtime::FinishReason reason = runtime::FinishReason::kStop;  // or kLength; the others are Failed
  bool tool_calls = false;               // parse_chat: the answer holds tool calls
  std::optional<std::string> stop_text;  // the stop string that matched
  std::optional<runtime::TokenId> stop_id;
  uint32_t output_tokens = 0, reasoning_tokens = 0;
};
struct Done {
  uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
};
using SinkEvent = std::variant<Accepted, Failed, Delta, ChoiceDone, Done>;

// Called from actor threads, one call at a time per request; must not block. False = the receiver
// is gone or its bounded queue is full: the request is aborted.
using Sink = std::function<bool(SinkEvent)>;

// Where the service is in its life: starting -> ready -> draining, or failed from any of them.
struct ServicePhase {
  enum class Kind { kStarting, kReady, kDraining, kFailed };
  Kind kind = Kind::kStarting;
  std::string reason;  // kFailed: what was lost and why
};

struct ServiceInfo {       // static facts for /get_server_info and /v1/models
  std::string model_name;  // last part of the weights path
  std::string model_path;
  uint32_t context_length = 0, vocab_size = 0, page_tokens = 0, chunk_tokens = 0, max_running = 0,
           max_queue = 0, threads = 0;
  uint64_t weight_bytes = 0, arena_bytes = 0, state_bytes = 0, page_bytes = 0;
  uint64_t states_max = 0, pages_max = 0;  // what the arena holds when it holds nothing else
  std::string kernel_target, device, kv_dtype;
  uint64_t weights_digest = 0;  // of all tensors and config.json
  std::string host_cache_note;  // what became of the spill file; empty: there was none
  bool has_tokenizer = false;
  std::string default_reasoning_effort = "max";
};

struct ServiceMetrics {
  runtime::SchedulerStats scheduler;
  memory::CacheOwners pools;
  memory::CacheCounters cache;
  uint64_t rejected_total = 0;  // requests answered kFull (429)
  double gen_throughput = 0;    // tokens/s over the last seconds
  Histogram ttft_seconds, itl_seconds, e2e_seconds, queue_seconds;
  uint64_t worker_busy_ns = 0, worker_idle_ns = 0;  // idle: between steps, while work was left
  Histogram worker_gap_seconds;                     // the same idle times, one by one
  uint32_t open_requests = 0;
};

struct NamedRequest {
  std::string rid;  // "chatcmpl-...", or what its client chose
  runtime::RequestId id;
};

class Service {
 public:
  virtual ~Service() = default;
  virtual ServicePhase phase() const = 0;
  virtual bool ready() const = 0;  // phase() is kReady
  virtual ServiceInfo info() const = 0;
  // Takes a credit per choice, or fails at once: kFull (429), kUnavailable (503), or kInvalid for
  // more choices than there are credits, or than kChoicesMax. The sink gets everything else.
  virtual kernels::Result<runtime::RequestId> submit(runtime::GenerateRequest request,
                                                     Sink sink) = 0;
  virtual void abort(runtime::RequestId request) = 0;         // idempotent
  virtual uint32_t abort_by_rid(const std::string& rid) = 0;  // how many were open
  virtual uint32_t abort_all() = 0;                           // how many were open
  virtual ServiceMetrics metrics() = 0;
  virtual bool flush_cache() = 0;  // false while requests run
  // A console's questions; each waits for its turn in the mailboxes, a few seconds at most.
  virtual kernels::Result<memory::CacheReport> cache_report(const memory::ReportQuery& query) = 0;
  virtual kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) = 0;
  virtual kernels::Result<memory::NodeOutcome> change_node(const memory::NodeOrder& order) = 0;
  // Open requests, and the latest that were, by the id their answer bears; the newest last.
  virtual std::vector<NamedRequest> named_requests() = 0;
  virtual std::shared_ptr<const runtime::Tokenizer> tokenizer()
      const = 0;  // nullptr: token-id prompts only
};

}  // namespace actors
