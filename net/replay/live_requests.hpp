// The requests of a trace as an OpenAI-compatible server takes them. A prompt that the trace holds
// is sent as it is; one that it knows by blocks alone is made up, so that prompts share what they
// share in the trace.
#pragma once

#include <cstdint>
#include <string>

#include "net/replay/http_ask.hpp"
#include "net/replay/prompt_source.hpp"
#include "net/trace/trace.hpp"

namespace net {

struct LiveRequestOptions {
  std::string model;
  bool text = false;  // made-up prompts are words instead of token ids
  bool chat = false;  // and the words a user's message
  bool ignore_eos = true;
};

// Words that made-up prompts choose from: as many as the prompts' vocabulary must have then.
inline constexpr uint32_t kWords = 4096;

class LiveRequests {
 public:
  // Both must outlive it. Prompts of another scale than the trace's are all made up.
  LiveRequests(const Trace& trace, const PromptSource& prompts, const LiveRequestOptions& options);

  HttpAsk ask(uint32_t request) const;

 private:
  HttpAsk made_up(uint32_t request) const;
  std::string words(uint32_t request) const;

  const Trace& trace_;
  const PromptSource& prompts_;
  LiveRequestOptions options_;
};

}  // namespace net
