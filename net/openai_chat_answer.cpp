// chat.completion and chat.completion.chunk.
#include "net/openai_answer.hpp"
#include "net/openai_logprobs.hpp"
#include "net/openai_writer.hpp"

namespace net {
namespace {

using Kind = runtime::ChatDelta::Kind;

struct CollectedCall {
  std::string name, arguments;
};

struct CollectedChoice {
  std::string reasoning, content;
  std::vector<CollectedCall> calls;
  std::string logprobs;  // comma-separated JSON objects
  actors::ChoiceDone done;
};

bool continues(const runtime::ChatDelta& last, const runtime::ChatDelta& next) {
  return last.kind == next.kind && next.kind != Kind::kToolBegin &&
         last.tool_index == next.tool_index;
}

// Neighbours of one kind become one piece: one chunk on the wire.
std::vector<runtime::ChatDelta> join_pieces(const std::vector<runtime::ChatDelta>& deltas) {
  std::vector<runtime::ChatDelta> pieces;
  for (const runtime::ChatDelta& delta : deltas) {
    if (delta.kind != Kind::kToolBegin && delta.text.empty()) continue;
    if (!pieces.empty() && continues(pieces.back(), delta))
      pieces.back().text += delta.text;
    else
      pieces.push_back(delta);
  }
  return pieces;
}

class ChatAnswer final : public AnswerBase {
 public:
  explicit ChatAnswer(ChatAnswerOptions options)
      : AnswerBase(std::move(options.head), "chat.completion", "chat.completion.chunk",
                   options.choices),
        names_(std::move(options.tokenizer), false),
        logprobs_(options.logprobs),
        call_key_(std::move(options.call_key)),
        collected_(options.choices) {}

 private:
  void accepted(const actors::Accepted&, Chunks* chunks) override {
    if (chunks == nullptr) return;
    for (uint32_t choice = 0; choice < choices();
         ++choice) {  // the role is named once per choice, here
      std::string chunk = begin_chunk(choice);
      chunk +=
          ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_"
          "reason\":null";
      end_chunk(chunk);
      chunks->push_back(std::move(chunk));
    }
  }

  void delta(const actors::Delta& event, Chunks* chunks) override {
    const std::vector<runtime::ChatDelta> pieces = join_pieces(event.chat);
    std::string logprobs;
    if (logprobs_) append_chat_logprobs(logprobs, event.logprobs, names_);
    if (chunks == nullptr) {
      for (const runtime::ChatDelta& piece : pieces) keep(collected_[event.choice], piece);
      std::string& list = collected_[event.choice].logprobs;
      if (!list.empty() && !logprobs.empty()) list += ',';
      list += logprobs;
      return;
    }
    // Log-probabilities go with the first piece; markup has them without a piece.
    for (size_t i = 0; i < pieces.size(); ++i)
      chunks->push_back(chunk_of(event.choice, &pieces[i], i == 0 ? logprobs : std::string()));
    if (pieces.empty() && !logprobs.empty())
      chunks->push_back(chunk_of(event.choice, nullptr, logprobs));
  }

  void choice_done(const actors::ChoiceDone& event, Chunks* chunks) override {
    if (chunks == nullptr) {
      collected_[event.choice].done = event;
      return;
    }
    std::string chunk = begin_chunk(event.choice);
    chunk += ",\"delta\":{},\"logprobs\":null";
    append_finish(chunk, event);
    end_chunk(chunk);
    chunks->push_back(std::move(chunk));
  }

  static void keep(CollectedChoice& choice, const runtime::ChatDelta& piece) {
    if (piece.kind == Kind::kReasoning) choice.reasoning += piece.text;
    if (piece.kind == Kind::kContent) choice.content += piece.text;
    if (piece.kind != Kind::kToolBegin && piece.kind != Kind::kToolArguments) return;
    if (piece.tool_index >= choice.calls.size()) choice.calls.resize(size_t{piece.tool_index} + 1);
    CollectedCall& call = choice.calls[piece.tool_index];
    if (piece.kind == Kind::kToolBegin)
      call.name = piece.tool_name;
    else
      call.arguments += piece.text;
  }

  std::string chunk_of(uint32_t choice, const runtime::ChatDelta* piece,
                       const std::string& logprobs) const {
    std::string chunk = begin_chunk(choice);
    chunk += ",\"delta\":{";
    if (piece != nullptr) append_piece(chunk, choice, *piece);
    chunk += logprobs.empty() ? "},\"logprobs\":null"
                              : "},\"logprobs\":{\"content\":[" + logprobs + "]}";
    chunk += ",\"finish_reason\":null";
    end_chunk(chunk);
    return chunk;
  }

  void append_piece(std::string& out, uint32_t choice, const runtime::ChatDelta& piece) const {
    switch (piece.kind) {
      case Kind::kReasoning:
        out += "\"reasoning_content\":";
        append_quoted(out, piece.text);
        return;
      case Kind::kContent:
        out += "\"content\":";
        append_quoted(out, piece.text);
        return;
      case Kind::kToolBegin:
        out += "\"tool_calls\":[{\"index\":";
        append_integer(out, piece.tool_index);
        append_call(out, choice, piece.tool_index, piece.tool_name, "");
        out += ']';
        return;
      case Kind::kToolArguments:
        out += "\"tool_calls\":[{\"index\":";
        append_integer(out, piece.tool_index);
        out += ",\"function\":{\"arguments\":";
        append_quoted(out, piece.text);
        out += "}}]";
        return;
    }
  }

  // `,"id":...,"type":"function","function":{...}}`: follows the opening brace and the index.
  void append_call(std::string& out, uint32_t choice, size_t index, std::string_view name,
                   std::string_view arguments) const {
    out += ",\"id\":";
    append_quoted(out,
                  "call_" + call_key_ + "_" + std::to_string(choice) + "_" + std::to_string(index));
    out += ",\"type\":\"function\",\"function\":{\"name\":";
    append_quoted(out, name);
    out += ",\"arguments\":";
    append_quoted(out, arguments);
    out += "}}";
  }

  void append_choice(std::string& out, uint32_t index) const override {
    const CollectedChoice& choice = collected_[index];
    out += "{\"index\":";
    append_integer(out, index);
    out += ",\"message\":{\"role\":\"assistant\",\"content\":";
    if (choice.content.empty() && !choice.calls.empty())
      out += "null";
    else
      append_quoted(out, choice.content);
    out += ",\"refusal\":null";
    if (!choice.reasoning.empty()) {
      out += ",\"reasoning_content\":";
      append_quoted(out, choice.reasoning);
    }
    if (!choice.calls.empty()) out += ",\"tool_calls\":[";
    for (size_t i = 0; i < choice.calls.size(); ++i) {
      out += i == 0 ? "{\"index\":" : ",{\"index\":";
      append_integer(out, static_cast<int64_t>(i));
      append_call(out, index, i, choice.calls[i].name, choice.calls[i].arguments);
    }
    if (!choice.calls.empty()) out += ']';
    out += choice.logprobs.empty() ? "},\"logprobs\":null"
                                   : "},\"logprobs\":{\"content\":[" + choice.logprobs + "]}";
    append_finish(out, choice.done);
    out += '}';
  }

  TokenNames names_;
  bool logprobs_;
  std::string call_key_;
  std::vector<CollectedChoice> collected_;
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(ChatAnswerOptions options) {
  return std::make_unique<ChatAnswer>(std::move(options));
}

}  // namespace net
