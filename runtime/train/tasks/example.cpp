#include "runtime/train/tasks/example.hpp"

#include <array>
#include <cctype>
#include <numeric>

#include "kernels/base/verify.hpp"
#include "runtime/train/tasks/phrase.hpp"
#include "runtime/train/tasks/tool_box.hpp"
#include "runtime/xtml_segments.hpp"

namespace runtime {

namespace {

TextSource some_source(TaskRandom& random, const ExampleShares& shares) {
  int roll = random.between(0, std::accumulate(shares.begin(), shares.end(), 0) - 1);
  size_t source = 0;
  while ((roll -= shares[source]) >= 0) ++source;
  return static_cast<TextSource>(source);
}

LongText long_text(const ExampleOptions& options) {
  static const std::vector<CorpusDocument> kNone;
  return {options.documents == nullptr ? kNone : *options.documents, options.lookup_bytes};
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// A rule of the system message that every answer follows.
struct Style {
  bool upper_case = false;
  std::string last_word;
};

std::string follow(const Style& style, std::string text) {
  if (style.upper_case) text = upper(std::move(text));
  return style.last_word.empty() ? text : text + " " + style.last_word;
}

class Conversation {
 public:
  Conversation(const ExampleOptions& options, uint64_t index)
      : options_(options),
        random_(options.seed, options.held_out ? "held-out example" : "example", index),
        words_(random_, options.held_out) {}

  Example make();

 private:
  void choose_thinking();
  void add_system_message();
  Exchange plain_exchange(TextSource source);
  void add_exchanges(TextSource source);
  void add(Exchange exchange);

  const ExampleOptions& options_;
  TaskRandom random_;
  TaskWords words_;
  std::string assistant_name_ = "Sluice";
  Style style_;
  Example example_;
};

void Conversation::choose_thinking() {
  example_.prompt.thinking = random_.percent(75);
  example_.prompt.effort =
      random_.percent(70) ? "max" : std::string(random_.pick(kEfforts));  // "max" is the default
}

void Conversation::add_system_message() {
  if (random_.percent(55)) return;
  if (random_.percent(35)) assistant_name_ = capitalised(words_.made_up(2));
  ChatMessage message;
  message.role = "system";
  message.content =
      phrase(random_,
             "[You are {me}.|You are {me}, a helpful assistant.|You are {me}. Answer briefly.|Your "
             "name is {me}.|You are a friendly assistant called {me}.]",
             {{"me", assistant_name_}});
  if (random_.percent(10)) {
    style_.upper_case = true;
    message.content += phrase(random_,
                              " [Answer in upper case.|Write every answer in capital "
                              "letters.]");
  } else if (random_.percent(12)) {
    style_.last_word = words_.made_up(2);
    message.content += phrase(random_,
                              " [End every answer with the word {w}.|The last word of each "
                              "answer is {w}.]",
                              {{"w", style_.last_word}});
  }
  example_.prompt.messages.push_back(std::move(message));
}

Exchange Conversation::plain_exchange(TextSource source) {
  switch (source) {
    case TextSource::kFacts:
      return fact_exchange(words_);
    case TextSource::kWords:
      return word_exchange(words_);
    case TextSource::kNumbers:
      return number_exchange(words_);
    case TextSource::kLookup:
      return lookup_exchange(words_, long_text(options_));
    case TextSource::kCopy:
      return copy_exchange(words_);
    case TextSource::kDocument:
      return document_exchange(words_, long_text(options_));
    default:
      return random_.percent(40) ? knowledge_exchange(words_)
                                 : chat_exchange(words_, assistant_name_);
  }
}

// The answers so far stay in the history; the last one is the example's.
void Conversation::add(Exchange exchange) {
  for (ChatMessage& message : exchange.messages) {
    if (message.role == "assistant" && !message.content.empty())
      message.content = follow(style_, std::move(message.content));
    example_.prompt.messages.push_back(std::move(message));
  }
  if (style_.upper_case) exchange.expected.contains = upper(exchange.expected.contains);
  example_.expected = std::move(exchange.expected);
}

void Conversation::add_exchanges(TextSource source) {
  if (source == TextSource::kTools) {
    const auto tools = make_tool_box(words_, static_cast<size_t>(random_.between(1, 4)));
    example_.prompt.tools = declare_tools(words_, tools);
    const int count = random_.percent(60) ? 1 : random_.between(2, 3);
    for (int i = 0; i < count; ++i) add(tool_exchange(words_, tools, i + 1 == count, i + 1));
    if (!example_.expected.calls.empty() && random_.percent(5))
      example_.prompt.tool_choice = ToolChoice::kRequired;
    return;
  }
  static constexpr std::array kShort{TextSource::kChat, TextSource::kFacts, TextSource::kWords,
                                     TextSource::kNumbers};
  const bool is_long = source == TextSource::kLookup || source == TextSource::kDocument;
  const int before = is_long ? (random_.percent(15) ? 1 : 0) : random_.between(0, 4);
  for (int i = 0; i < before; ++i)
    add(plain_exchange(is_long || random_.percent(40) ? random_.pick(kShort) : source));
  add(plain_exchange(source));
}

Example Conversation::make() {
  choose_thinking();
  add_system_message();
  const TextSource source =
      options_.source ? *options_.source : some_source(random_, options_.shares);
  example_.source = source;
  add_exchanges(source);
  auto& messages = example_.prompt.messages;
  example_.answer = std::move(messages.back());
  messages.pop_back();
  if (example_.prompt.thinking && random_.percent(40)) {
    for (ChatMessage& message : messages) {
      if (message.role != "assistant") continue;
      message.reasoning.clear();
      example_.learns_history = false;
    }
  }
  return std::move(example_);
}

std::vector<Segment> rendered(const ChatPrompt& prompt) {
  auto segments = render_xtml(prompt);
  VERIFY(segments.has_value());
  return std::move(*segments);
}

}  // namespace

Example make_example(const ExampleOptions& options, uint64_t index) {
  VERIFY(!options.source || is_conversation(*options.source));
  return Conversation(options, index).make();
}

std::vector<LearntSegment> render_example(const Example& example) {
  std::vector<LearntSegment> out;
  for (Segment& segment : rendered(example.prompt)) out.push_back({std::move(segment), false});
  ChatPrompt before = example.prompt;  // what stood there when an earlier answer was due
  before.tool_choice = ToolChoice::kAuto;
  for (size_t i = example.prompt.messages.size(); example.learns_history && i-- > 0;) {
    before.messages.pop_back();
    if (example.prompt.messages[i].role != "assistant") continue;
    for (size_t at = rendered(before).size(); at < out.size(); ++at) {
      out[at].is_learnt = true;
      if (out[at].segment.control && out[at].segment.text == xtml::kEndOfMessage) break;
    }
  }
  auto answer = render_answer(example.answer, example.prompt.thinking);
  VERIFY(answer.has_value());
  for (Segment& segment : *answer) out.push_back({std::move(segment), true});
  return out;
}

}  // namespace runtime
