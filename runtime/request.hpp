// What a client asked for, as plain values: no JSON, no sockets, no actors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/chat.hpp"

namespace runtime {

using TokenId = int32_t;

// One HTTP request; several sequences when n > 1 or when a completion lists several prompts.
struct RequestId {
  uint64_t value = 0;
  auto operator<=>(const RequestId&) const = default;
  auto fields() { return std::tie(value); }
};

// How the next token is chosen. Defaults are neutral: plain sampling at temperature 1.
struct SamplingParams {
  float temperature = 1.0f;         // 0 = greedy
  float top_p = 1.0f;               // (0, 1]
  int32_t top_k = 0;                // 0 = off
  float min_p = 0.0f;               // [0, 1]: drops tokens below min_p * p_max
  float repetition_penalty = 1.0f;  // > 0, over prompt and output
  float presence_penalty = 0.0f;    // [-2, 2], over output
  float frequency_penalty = 0.0f;   // [-2, 2], over output
  std::vector<std::pair<TokenId, float>> logit_bias;
  uint64_t seed = 0;  // drawn by the server when the client sends none, and stored with the request
  uint32_t choice = 0;  // index of this choice: part of the noise key
  int32_t top_logprobs =
      -1;  // -1: no log-probabilities; 0..20: the chosen token's, plus that many alternatives
  uint32_t min_tokens = 0;  // stop ids are masked before this many output tokens
  // The ids that end the sequence: the client's stop_token_ids, to which the text encoder adds the
  // model's end ids.
  std::vector<TokenId> stop_ids;
  bool ignore_eos = false;  // it adds none
  auto fields() {
    return std::tie(temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty,
                    frequency_penalty, logit_bias, seed, choice, top_logprobs, min_tokens, stop_ids,
                    ignore_eos);
  }
};

// A prompt in one of three forms; the text worker turns each into token ids.
using Prompt = std::variant<ChatPrompt, std::string, std::vector<TokenId>>;

struct GenerateRequest {
  std::string rid;              // client-visible id ("chatcmpl-..."): /abort_request names it
  std::vector<Prompt> prompts;  // chat: exactly one
  uint32_t n = 1;               // choices per prompt; choice index = prompt index * n + j
  std::optional<uint32_t> max_tokens;  // absent: to the end of the context
  uint32_t default_max_tokens = 0;     // and then at most this many; 0: no such bound
  SamplingParams sampling;             // `choice` is filled per sequence
  std::vector<std::string> stop;       // stop strings, at most 16
  bool include_stop_text = false;      // keep the matched stop string in the text
  bool skip_special_tokens = true;     // completions: leave control tokens out of the text
  bool prompt_logprobs = false;  // log-probabilities of the prompt's tokens too (echo + logprobs)
  bool parse_chat = false;       // split the output into reasoning / content / tool calls
  int32_t priority = 0;          // higher first
  std::optional<uint64_t> deadline_ms;  // from arrival; then the request ends with kTimeout
  std::string cache_salt;
  std::string session;  // what its client says it is part of; only recordings look at it
};

}  // namespace runtime
