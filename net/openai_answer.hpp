// What a chat answer and a completion answer share: the fields around the choices, usage, the order
// of a stream's payloads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/service.hpp"
#include "net/openai_api.hpp"

namespace net {

struct AnswerHead {
  std::string id;       // "chatcmpl-..." or "cmpl-...", or what the client chose as its rid
  int64_t created = 0;  // seconds since 1970
  std::string model;    // as the client wrote it
  std::string fingerprint;
  bool include_usage = false;  // streams: one more chunk with the usage at the end
};

// Of an answer made now: all but what the client asked for.
AnswerHead make_head(const actors::ServiceInfo& info, std::string id);
std::string random_hex(int words);  // 8 digits per word

struct Usage {
  uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, reasoning_tokens = 0;
};

// Sends events to the hooks of one kind of answer. Every text passes through delta() and
// choice_done(), streamed or not. Invariant: open() was called for a choice before any other hook
// names it.
class AnswerBase : public Answer {
 public:
  AnswerBase(AnswerHead head, std::string_view object, std::string_view chunk_object,
             uint32_t choices);
  void stream(const actors::SinkEvent& event, std::vector<std::string>& payloads) final;
  void collect(const actors::SinkEvent& event) final;
  std::string body() final;

 protected:
  // Hooks. `chunks` is null when the answer is collected; else each appended string is one payload.
  using Chunks = std::vector<std::string>;
  virtual void accepted(const actors::Accepted& event, Chunks* chunks) = 0;
  virtual void delta(const actors::Delta& event, Chunks* chunks) = 0;
  virtual void choice_done(const actors::ChoiceDone& event, Chunks* chunks) = 0;
  virtual void append_choice(std::string& out,
                             uint32_t choice) const = 0;  // the collected choice's JSON object

  std::string begin_chunk(uint32_t choice) const;  // up to and including `{"index":N`
  void end_chunk(std::string& chunk) const;        // closes the choice and the chunk
  uint32_t choices() const { return choices_; }
  const AnswerHead& head() const { return head_; }

 private:
  void handle(const actors::SinkEvent& event, Chunks* chunks);
  std::string envelope(std::string_view object) const;

  AnswerHead head_;
  uint32_t choices_;
  std::string body_begin_, chunk_begin_;  // everything before the choices, escaped once
  Usage usage_;
};

std::string_view finish_word(const actors::ChoiceDone& done);
// `,"finish_reason":...,"matched_stop":...`
void append_finish(std::string& out, const actors::ChoiceDone& done);

struct ChatAnswerOptions {
  AnswerHead head;
  uint32_t choices = 1;
  bool logprobs = false;
  std::string call_key;  // makes tool call ids unique across requests
  std::shared_ptr<const runtime::Tokenizer> tokenizer;
};
std::unique_ptr<Answer> make_chat_answer(ChatAnswerOptions options);

struct CompletionAnswerOptions {
  AnswerHead head;
  uint32_t prompts = 1, n = 1;  // choice index = prompt index * n + j
  bool echo = false, logprobs = false;
  bool return_token_ids = false, tokens_as_ids = false, skip_special_tokens = true;
  std::shared_ptr<const runtime::Tokenizer>
      tokenizer;  // nullptr: texts are empty, token names are ids
};
std::unique_ptr<Answer> make_completion_answer(CompletionAnswerOptions options);

}  // namespace net
