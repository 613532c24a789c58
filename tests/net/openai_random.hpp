// Random event sequences as a session could send them: text that needs escaping, choices
// interleaved, any split into deltas.
#pragma once

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "actors/service.hpp"

namespace testing {

using Events = std::vector<actors::SinkEvent>;

struct RandomAnswer {
  std::mt19937 rng;
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(rng() % n); }

  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a", "\"", "\\", "\n", "\x01", "h\u00e9", "\U0001F600", "", "</x>", "\u2028"};
    std::string out;
    for (uint32_t i = below(4); i > 0; --i)
      out += kPieces[below(static_cast<uint32_t>(kPieces.size()))];
    return out;
  }

  runtime::PositionLogprobs position(runtime::TokenId id) {
    runtime::PositionLogprobs out{{id, -0.001f * static_cast<float>(below(9000))}, {}};
    if (below(20) == 0) out.chosen.logprob = -std::numeric_limits<float>::infinity();
    for (uint32_t i = below(3); i > 0; --i)
      out.top.push_back({static_cast<runtime::TokenId>(below(512)), -0.5f});
    return out;
  }

  void tokens(actors::Delta& delta, bool logprobs) {
    for (uint32_t i = below(3); i > 0; --i) {
      const auto id = static_cast<runtime::TokenId>(below(512));
      delta.token_ids.push_back(id);
      if (logprobs) delta.logprobs.push_back(position(id));
    }
  }

  // Calls begin in order of their index, as the parser emits them.
  void chat_pieces(actors::Delta& delta, uint32_t& calls) {
    for (uint32_t i = below(5); i > 0; --i) {
      switch (below(4)) {
        case 0:
          delta.chat.push_back({runtime::ChatDelta::Kind::kReasoning, text(), 0, {}});
          break;
        case 1:
          delta.chat.push_back({runtime::ChatDelta::Kind::kContent, text(), 0, {}});
          break;
        case 2:
          delta.chat.push_back({runtime::ChatDelta::Kind::kToolBegin, {}, calls++, "f\"" + text()});
          break;
        default:
          if (calls > 0)
            delta.chat.push_back({runtime::ChatDelta::Kind::kToolArguments, text(), calls - 1, {}});
      }
    }
  }

  actors::ChoiceDone done(uint32_t choice, bool calls) {
    actors::ChoiceDone out;
    out.choice = choice;
    out.reason = below(2) == 0 ? runtime::FinishReason::kStop : runtime::FinishReason::kLength;
    out.tool_calls = calls;
    if (below(3) == 0) out.stop_text = "\"stop";
    if (below(3) == 0) out.stop_id = 258;
    out.reasoning_tokens = below(5);
    return out;
  }

  Events events(uint32_t prompts, uint32_t n, bool chat, bool logprobs, bool prompt_logprobs) {
    actors::Accepted accepted;
    for (uint32_t i = 0; i < prompts; ++i) {
      std::vector<runtime::TokenId> prompt;
      for (uint32_t j = 1 + below(6); j > 0; --j)
        prompt.push_back(static_cast<runtime::TokenId>(below(512)));
      accepted.prompts.emplace_back(std::move(prompt));
    }
    Events out{accepted};
    std::vector<uint32_t> open, calls(prompts * n), seen(prompts * n);
    for (uint32_t choice = 0; choice < prompts * n; ++choice) open.push_back(choice);
    while (!open.empty()) {
      const uint32_t which = below(static_cast<uint32_t>(open.size())), choice = open[which];
      if (below(6) == 0) {
        out.push_back(done(choice, calls[choice] > 0));
        open.erase(open.begin() + which);
        continue;
      }
      actors::Delta delta;
      delta.choice = choice;
      tokens(delta, logprobs);
      if (chat)
        chat_pieces(delta, calls[choice]);
      else
        delta.text = text();
      if (prompt_logprobs && seen[choice]++ == 0)
        for (size_t i = 1; i < accepted.prompts[choice / n].size(); ++i)
          delta.prompt_logprobs.push_back(position(accepted.prompts[choice / n][i]));
      out.push_back(delta);
    }
    out.push_back(actors::Done{7 + below(9), below(7), below(99)});
    return out;
  }
};

}  // namespace testing
