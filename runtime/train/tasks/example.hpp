// One generated example: a conversation that asks for an answer, the right answer, and what a
// model's own answer is checked for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/chat.hpp"
#include "runtime/train/corpus_document.hpp"
#include "runtime/train/tasks/example_shares.hpp"
#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/text_source.hpp"
#include "runtime/xtml_template.hpp"

namespace runtime {

struct Example {
  TextSource source = TextSource::kChat;  // of the last exchange
  ChatPrompt prompt;
  ChatMessage answer;
  Expectation expected;
  bool learns_history = true;  // false: the history lacks its reasoning, as clients send it back
};

struct ExampleOptions {
  uint64_t seed = 0;
  bool held_out = false;  // other seeds, and names and values that the rest never uses
  const std::vector<CorpusDocument>* documents = nullptr;  // of the same side; may be null
  std::optional<TextSource> source = {};                   // a generator: examples of it alone
  size_t lookup_bytes = 0;  // the length of a text to look up in; 0: various
  ExampleShares shares = default_example_shares();
};

// Depends on the options and the index alone.
Example make_example(const ExampleOptions& options, uint64_t index);

struct LearntSegment {
  Segment segment;
  bool is_learnt = false;  // the assistant produces it
};

// The whole conversation as the template renders it, the answer at its end.
std::vector<LearntSegment> render_example(const Example& example);

}  // namespace runtime
