#include "actors/choice_stream.hpp"

#include <utility>

namespace actors {

using runtime::ChatDelta;

ChoiceStream::ChoiceStream(uint32_t choice, const OutputOptions& options)
    : choice_(choice),
      tokenizer_(options.tokenizer),
      stops_(options.stop, options.include_stop_text) {
  if (tokenizer_ == nullptr) return;
  if (options.parse_chat) {
    parser_ = std::make_unique<runtime::XtmlParser>(tokenizer_, options.thinking);
    reasoning_ = options.thinking;
  } else {
    detokenizer_.emplace(tokenizer_, options.skip_special_tokens);
  }
}

void ChoiceStream::push(runtime::SequenceToken&& token, Delta& delta) {
  ++output_tokens_;
  delta.token_ids.push_back(token.token);
  if (token.logprobs) delta.logprobs.push_back(std::move(*token.logprobs));
  if (detokenizer_) delta.text += stops_.push(detokenizer_->push(token.token));
  if (!parser_) return;
  std::vector<ChatDelta> pieces;
  parser_->push(token.token, pieces);
  count_reasoning(token.token, pieces);
  show(std::move(pieces), delta);
}

void ChoiceStream::finish(Delta& delta) {
  if (detokenizer_) delta.text += stops_.push(detokenizer_->finish());
  if (parser_) {
    std::vector<ChatDelta> pieces;
    parser_->finish(pieces);
    show(std::move(pieces), delta);
    end_kind(delta);
  } else {
    delta.text += stops_.finish();
  }
  if (reasoning_) reasoning_tokens_ += std::exchange(unplaced_tokens_, 0);
}

void ChoiceStream::show(std::vector<ChatDelta> pieces, Delta& delta) {
  for (ChatDelta& piece : pieces) {
    if (stopped()) return;
    show(std::move(piece), delta);
  }
}

void ChoiceStream::show(ChatDelta piece, Delta& delta) {
  if (piece.kind != kind_) end_kind(delta);
  kind_ = piece.kind;
  if (kind_ == Kind::kReasoning || kind_ == Kind::kContent) {
    piece.text = stops_.push(piece.text);
    if (piece.text.empty()) return;
  }
  delta.chat.push_back(std::move(piece));
}

void ChoiceStream::end_kind(Delta& delta) {
  std::string held = stops_.finish();
  if (!held.empty()) delta.chat.push_back({kind_, std::move(held), 0, {}});
}

// A token counts as reasoning if what it ends up in is reasoning. Control tokens are markup and
// count nowhere.
void ChoiceStream::count_reasoning(runtime::TokenId id, const std::vector<ChatDelta>& pieces) {
  if (!reasoning_) return;
  if (!tokenizer_->is_special(id)) ++unplaced_tokens_;
  if (pieces.empty()) return;
  if (pieces.front().kind == Kind::kReasoning)
    reasoning_tokens_ += std::exchange(unplaced_tokens_, 0);
  reasoning_ = pieces.back().kind == Kind::kReasoning;
}

ChoiceDone ChoiceStream::summary(const runtime::SequenceFinished* finished) const {
  ChoiceDone done;
  done.choice = choice_;
  done.tool_calls = parser_ && parser_->saw_tool_call();
  done.stop_text = stops_.matched();
  done.output_tokens = output_tokens_;
  done.reasoning_tokens = reasoning_tokens_;
  if (finished != nullptr && !stopped()) {
    done.reason = finished->reason;
    done.stop_id = finished->stop_id;
    done.output_tokens = finished->output_tokens;
  }
  return done;
}

}  // namespace actors
