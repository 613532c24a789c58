// One choice's ids on their way to text: detokenise, or split a chat answer into its parts; stop
// strings; counts.
//
// Stop strings apply to the visible text, that is reasoning and content, each searched on its own;
// the names and arguments of tool calls never stop an answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "runtime/stop_strings.hpp"

namespace actors {

struct OutputOptions {
  std::shared_ptr<const runtime::Tokenizer> tokenizer;  // nullptr: ids only
  std::vector<std::string> stop;
  bool include_stop_text = false;
  bool skip_special_tokens = true;
  bool parse_chat = false;
  bool thinking = false;  // the prompt ended inside <think>
};

// Invariant: the text of all deltas, joined, is the whole text cut at the first stop string.
class ChoiceStream {
 public:
  ChoiceStream(uint32_t choice, const OutputOptions& options);

  // Appends the token and what it made visible. Not called after stopped().
  void push(runtime::SequenceToken&& token, Delta& delta);
  // No more tokens: appends what was held back. May still complete a stop string.
  void finish(Delta& delta);
  bool stopped() const { return stops_.matched().has_value(); }
  uint32_t output_tokens() const { return output_tokens_; }  // pushed so far

  // `finished`: what the scheduler says of the sequence; absent when a stop string ended it first.
  ChoiceDone summary(const runtime::SequenceFinished* finished) const;

 private:
  using Kind = runtime::ChatDelta::Kind;
  void show(std::vector<runtime::ChatDelta> pieces, Delta& delta);
  void show(runtime::ChatDelta piece, Delta& delta);
  void end_kind(Delta& delta);  // releases held-back text before another kind of text begins
  void count_reasoning(runtime::TokenId id, const std::vector<runtime::ChatDelta>& pieces);

  uint32_t choice_;
  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
  std::optional<runtime::Detokenizer> detokenizer_;
  std::unique_ptr<runtime::XtmlParser> parser_;  // parse_chat
  runtime::StopStrings stops_;
  Kind kind_ = Kind::kContent;    // of the text that stops_ holds back
  bool reasoning_ = false;        // no other kind of output has begun
  uint32_t unplaced_tokens_ = 0;  // read, but nothing visible came of them yet
  uint32_t output_tokens_ = 0, reasoning_tokens_ = 0;
};

}  // namespace actors
