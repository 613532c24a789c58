// text_completion, whole and as chunks.
#include "net/openai_answer.hpp"
#include "net/openai_logprobs.hpp"
#include "net/openai_writer.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

using runtime::PositionLogprobs;
using runtime::TokenId;

// What one event adds to a choice.
struct Piece {
  std::string text;
  std::vector<TokenId> token_ids;  // generated ones only
  CompletionLogprobs logprobs;
  bool names_prompt =
      false;  // the first piece of a choice: carries prompt_token_ids if they were asked for
};

struct ChoiceState {
  bool opened = false;
  uint32_t text_offset = 0;  // code points of all tokens so far: where the next token's text begins
  Piece collected;
  actors::ChoiceDone done;
};

void append_ids(std::string& out, std::string_view key, const std::vector<TokenId>& ids) {
  out += ",\"";
  out += key;
  out += "\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    append_integer(out, ids[i]);
  }
  out += ']';
}

class CompletionAnswer final : public AnswerBase {
 public:
  explicit CompletionAnswer(CompletionAnswerOptions options)
      : AnswerBase(std::move(options.head), "text_completion", "text_completion",
                   options.prompts * options.n),
        options_(std::move(options)),
        names_(options_.tokenizer, options_.tokens_as_ids),
        states_(choices()) {}

 private:
  void accepted(const actors::Accepted& event, Chunks*) override {
    if (options_.echo || options_.return_token_ids) prompts_ = event.prompts;
  }

  void delta(const actors::Delta& event, Chunks* chunks) override {
    ChoiceState& state = states_[event.choice];
    Piece piece;
    open(event.choice, event.prompt_logprobs, piece);
    piece.text += event.text;
    piece.token_ids = event.token_ids;
    for (size_t i = 0; i < event.token_ids.size(); ++i) {
      const bool known = i < event.logprobs.size();
      if (options_.logprobs)
        piece.logprobs.add(event.token_ids[i], known ? &event.logprobs[i] : nullptr,
                           state.text_offset, names_);
      advance(state, event.token_ids[i]);
    }
    keep(event.choice, std::move(piece), chunks);
  }

  void choice_done(const actors::ChoiceDone& event, Chunks* chunks) override {
    ChoiceState& state = states_[event.choice];
    if (!state.opened) {  // nothing was generated (max_tokens 0): the prompt is all there is
      Piece piece;
      open(event.choice, {}, piece);
      keep(event.choice, std::move(piece), chunks);
    }
    state.done = event;
    if (chunks == nullptr) return;
    std::string chunk = begin_chunk(event.choice);
    chunk += ",\"text\":\"\",\"logprobs\":null";
    append_finish(chunk, event);
    if (options_.return_token_ids) append_ids(chunk, "token_ids", {});
    end_chunk(chunk);
    chunks->push_back(std::move(chunk));
  }

  // The prompt's share of a choice, once, before anything generated.
  void open(uint32_t choice, const std::vector<PositionLogprobs>& prompt_logprobs, Piece& piece) {
    ChoiceState& state = states_[choice];
    if (state.opened) return;
    state.opened = true;
    piece.names_prompt = true;
    const size_t prompt_index = choice / options_.n;
    if (!options_.echo || prompt_index >= prompts_.size()) return;
    const std::vector<TokenId>& prompt = prompts_[prompt_index];
    for (size_t i = 0; i < prompt.size(); ++i) {
      const bool known =
          i > 0 && i - 1 < prompt_logprobs.size();  // nothing predicts the first token
      if (options_.logprobs)
        piece.logprobs.add(prompt[i], known ? &prompt_logprobs[i - 1] : nullptr, state.text_offset,
                           names_);
      advance(state, prompt[i]);
    }
    piece.text = text_of(prompt);
  }

  void advance(ChoiceState& state, TokenId id) const {
    if (!options_.skip_special_tokens || !names_.is_special(id))
      state.text_offset += runtime::count_code_points(names_.bytes(id));
  }

  std::string text_of(const std::vector<TokenId>& ids) const {
    if (options_.tokenizer == nullptr) return {};
    runtime::Detokenizer detokenizer(options_.tokenizer, options_.skip_special_tokens);
    std::string text;
    for (const TokenId id : ids) text += detokenizer.push(id);
    return text + detokenizer.finish();
  }

  void keep(uint32_t choice, Piece piece, Chunks* chunks) {
    if (chunks != nullptr) {
      const bool prompt_ids = piece.names_prompt && options_.return_token_ids;
      if (piece.text.empty() && piece.token_ids.empty() && piece.logprobs.empty() && !prompt_ids)
        return;
      std::string chunk = begin_chunk(choice);
      append_piece(chunk, choice, piece);
      chunk += ",\"finish_reason\":null";
      end_chunk(chunk);
      chunks->push_back(std::move(chunk));
      return;
    }
    Piece& all = states_[choice].collected;
    all.text += piece.text;
    all.token_ids.insert(all.token_ids.end(), piece.token_ids.begin(), piece.token_ids.end());
    all.logprobs.append(piece.logprobs);
    all.names_prompt = true;
  }

  // `,"text":...,"logprobs":...` and the ids if they were asked for
  void append_piece(std::string& out, uint32_t choice, const Piece& piece) const {
    out += ",\"text\":";
    append_quoted(out, piece.text);
    out += ",\"logprobs\":";
    if (!options_.logprobs || piece.logprobs.empty())
      out += "null";
    else
      piece.logprobs.append_object(out);
    if (!options_.return_token_ids) return;
    append_ids(out, "token_ids", piece.token_ids);
    const size_t prompt_index = choice / options_.n;
    if (piece.names_prompt && prompt_index < prompts_.size())
      append_ids(out, "prompt_token_ids", prompts_[prompt_index]);
  }

  void append_choice(std::string& out, uint32_t choice) const override {
    out += "{\"index\":";
    append_integer(out, choice);
    append_piece(out, choice, states_[choice].collected);
    append_finish(out, states_[choice].done);
    out += '}';
  }

  CompletionAnswerOptions options_;  // its head has moved into the base
  TokenNames names_;
  std::vector<runtime::SharedTokens> prompts_;  // empty unless the answer shows them
  std::vector<ChoiceState> states_;
};

}  // namespace

std::unique_ptr<Answer> make_completion_answer(CompletionAnswerOptions options) {
  return std::make_unique<CompletionAnswer>(std::move(options));
}

}  // namespace net
