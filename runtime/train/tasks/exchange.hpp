// What generated examples are made of: exchanges, each a question with all that is needed to
// answer it and the right answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/chat.hpp"
#include "runtime/train/corpus_document.hpp"
#include "runtime/train/tasks/task_words.hpp"

namespace runtime {

// What an answer is checked for.
struct Expectation {
  std::string contains;         // stands in the response as a whole word or words; may be empty
  std::vector<ToolCall> calls;  // these and no others; arguments compare as JSON values
};

struct Exchange {
  std::vector<ChatMessage> messages;  // the last one is the assistant's
  Expectation expected;               // of the last message
};

inline ChatMessage user_message(std::string text) {
  ChatMessage message;
  message.role = "user";
  message.content = std::move(text);
  return message;
}

inline ChatMessage assistant_message(std::string reasoning, std::string response) {
  ChatMessage message;
  message.role = "assistant";
  message.reasoning = std::move(reasoning);
  message.content = std::move(response);
  return message;
}

struct Answer {
  std::string reasoning, response, contains;
};

inline Exchange question(std::string text, Answer answer) {
  Exchange out;
  out.messages = {user_message(std::move(text)),
                  assistant_message(std::move(answer.reasoning), std::move(answer.response))};
  out.expected.contains = std::move(answer.contains);
  return out;
}

// Texts that something is hidden in, or that are asked about.
struct LongText {
  const std::vector<CorpusDocument>&
      documents;     // of the words' side of the held-out line, or empty
  size_t bytes = 0;  // how long to make a text to look up in; 0: any
};

// One generator for each kind of question.
Exchange chat_exchange(TaskWords& words, const std::string& assistant_name);
Exchange knowledge_exchange(TaskWords& words);
Exchange fact_exchange(TaskWords& words);
Exchange inference_exchange(TaskWords& words);
Exchange word_exchange(TaskWords& words);
Exchange number_exchange(TaskWords& words);
Exchange list_exchange(TaskWords& words);  // one list, copied or asked about
Exchange copy_exchange(TaskWords& words);  // lists and tables
Exchange lookup_exchange(TaskWords& words, const LongText& text);
Exchange document_exchange(TaskWords& words, const LongText& text);

}  // namespace runtime
