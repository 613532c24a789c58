// Generated conversations: reproducible, told apart from the held-out ones, and with answers that
// their own check accepts.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/prompt_encoding.hpp"
#include "runtime/train/tasks/answer_check.hpp"
#include "runtime/train/tasks/example.hpp"
#include "runtime/train/tasks/example_lines.hpp"
#include "runtime/train/tasks/phrase.hpp"
#include "runtime/train/tasks/task_words.hpp"
#include "tests/support/tokenizer_directory.hpp"

namespace {

using runtime::Example;
using runtime::TokenId;

const std::vector<runtime::CorpusDocument>& documents() {
  static const std::vector<runtime::CorpusDocument> all = [] {
    std::string text = "Title\n\n";
    for (int i = 0; i < 60; ++i) {
      const std::string n(1, static_cast<char>('a' + i % 26));
      text += "The gadget" + n + n + " is a device that turns the handle of machine " + n +
              ". It was built in a workshop near the harbour.\n\n";
    }
    return std::vector<runtime::CorpusDocument>{{"sqlite3-doc", "/a", text}};
  }();
  return all;
}

Example make(uint64_t index, bool held_out = false, uint64_t seed = 1) {
  return runtime::make_example({seed, held_out, &documents()}, index);
}

struct Ids {
  std::vector<TokenId> ids;
  std::vector<bool> learnt;
};

Ids encode(const Example& example) {
  const auto tokenizer = support::byte_tokenizer();
  Ids out;
  for (const auto& [segment, is_learnt] : runtime::render_example(example)) {
    if (segment.control) {
      out.ids.push_back(*tokenizer->special(segment.text));
    } else {
      tokenizer->encode_text(segment.text, out.ids);
    }
    out.learnt.resize(out.ids.size(), is_learnt);
  }
  return out;
}

// What a model that knows the answer would produce.
std::vector<TokenId> answer_ids(const Example& example) {
  const auto tokenizer = support::byte_tokenizer();
  const auto prompt = runtime::encode_prompt(tokenizer.get(), example.prompt, 1u << 20);
  REQUIRE(prompt.has_value());
  const Ids all = encode(example);
  REQUIRE(prompt->size() < all.ids.size());
  CHECK(std::equal(prompt->begin(), prompt->end(), all.ids.begin()));
  const auto begin = static_cast<std::ptrdiff_t>(prompt->size());
  CHECK(std::all_of(all.learnt.begin() + begin, all.learnt.end(), [](bool one) { return one; }));
  CHECK_FALSE(all.learnt[prompt->size() - 1]);
  return {all.ids.begin() + begin, all.ids.end()};
}

}  // namespace

TEST_CASE("A phrase takes one of each choice and the text of its slots", "[runtime][train]") {
  runtime::TaskRandom random(1, "phrase", 0);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i)
    seen.insert(runtime::phrase(random, "[Hi|Hello[,| there,]] {x}", {{"x", "[a|b]"}}));
  CHECK(seen == std::set<std::string>{"Hi [a|b]", "Hello, [a|b]", "Hello there, [a|b]"});
  CHECK(runtime::phrase(random, "a {x} and a {y}", {{"x", "orange"}, {"y", "pear"}}) ==
        "an orange and a pear");
}

TEST_CASE("Held-out words and made-up names are none of the others", "[runtime][train]") {
  std::set<std::string> words[2];
  for (const bool held_out : {false, true}) {
    runtime::TaskRandom random(5, "words", held_out ? 1 : 0);
    runtime::TaskWords source(random, held_out);
    for (int i = 0; i < 2000; ++i) {
      words[held_out].insert(source.one(runtime::WordList::kPeople));
      words[held_out].insert(source.one(runtime::WordList::kThings));
      words[held_out].insert(source.made_up(3));
      words[held_out].insert(source.code());
    }
  }
  std::vector<std::string> shared;
  std::set_intersection(words[0].begin(), words[0].end(), words[1].begin(), words[1].end(),
                        std::back_inserter(shared));
  CHECK(shared.empty());
  CHECK(words[1].size() > 1000);
}

TEST_CASE("An example depends on seed, side and index alone", "[runtime][train]") {
  std::set<std::string> texts;
  for (uint64_t i = 0; i < 50; ++i) {
    for (const bool held_out : {false, true}) {
      std::ostringstream first, second, other;
      runtime::write_example_line(make(i, held_out), first);
      runtime::write_example_line(make(i, held_out), second);
      runtime::write_example_line(make(i, held_out, 2), other);
      CHECK(first.str() == second.str());
      CHECK(first.str() != other.str());
      texts.insert(first.str());
    }
  }
  CHECK(texts.size() > 90);  // a greeting may come twice
}

TEST_CASE("The prompt is what the server encodes, and the right answer is marked right",
          "[runtime][train]") {
  const auto tokenizer = support::byte_tokenizer();
  std::set<runtime::TextSource> sources;
  for (uint64_t i = 0; i < 400; ++i) {
    CAPTURE(i);
    const Example example = make(i, i % 2 == 0);
    sources.insert(example.source);
    const auto marks = runtime::check_answer(tokenizer, example, answer_ids(example));
    CHECK(marks.is_well_formed);
    CHECK(marks.is_right);
  }
  CHECK(sources.size() == 7);
  for (uint64_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    runtime::ExampleOptions options{2, false, &documents()};
    options.source = runtime::TextSource::kCopy;
    const Example example = runtime::make_example(options, i);
    CHECK(runtime::check_answer(tokenizer, example, answer_ids(example)).is_right);
  }
}

TEST_CASE("A wrong call, a wrong value and a broken answer are marked so", "[runtime][train]") {
  const auto tokenizer = support::byte_tokenizer();
  int calls = 0;
  for (uint64_t i = 0; calls < 20; ++i) {
    const Example example = make(i);
    if (example.answer.tool_calls.empty()) continue;
    ++calls;
    Example other = example;
    other.answer.tool_calls[0].name += "x";
    auto marks = runtime::check_answer(tokenizer, example, answer_ids(other));
    CHECK(marks.is_well_formed);
    CHECK_FALSE(marks.is_right);
    other = example;
    other.answer.tool_calls[0].arguments = R"({"other": 1})";
    marks = runtime::check_answer(tokenizer, example, answer_ids(other));
    CHECK_FALSE(marks.is_right);
    auto cut = answer_ids(example);
    cut.pop_back();
    CHECK_FALSE(runtime::check_answer(tokenizer, example, cut).is_well_formed);
  }
}

TEST_CASE("What an earlier answer produced is learnt, unless its reasoning is gone",
          "[runtime][train]") {
  int with_history = 0, without = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const Example example = make(i);
    const auto answers =
        std::count_if(example.prompt.messages.begin(), example.prompt.messages.end(),
                      [](const auto& message) { return message.role == "assistant"; });
    const Ids all = encode(example);
    const TokenId end = *support::byte_tokenizer()->special("<|end_of_msg|>");
    std::ptrdiff_t learnt_ends = 0;
    for (size_t k = 0; k < all.ids.size(); ++k) learnt_ends += all.ids[k] == end && all.learnt[k];
    CHECK(learnt_ends == (example.learns_history ? answers + 1 : 1));
    CHECK_FALSE(all.learnt.front());
    (answers > 0 && example.learns_history ? with_history : without) += 1;
  }
  CHECK(with_history > 50);
  CHECK(without > 50);
}

TEST_CASE("Calls agree with the declared types", "[runtime][train]") {
  int checked = 0;
  for (uint64_t i = 0; checked < 60; ++i) {
    const Example example = make(i, i % 3 == 0);
    for (const auto& call : example.answer.tool_calls) {
      const auto& tools = example.prompt.tools.as_array();
      const auto tool = std::find_if(tools.begin(), tools.end(), [&](const auto& one) {
        return one.at("function").at("name").as_string() == call.name;
      });
      REQUIRE(tool != tools.end());
      const auto& properties = tool->at("function").at("parameters").at("properties").as_object();
      const auto arguments = boost::json::parse(call.arguments);
      for (const auto& [key, value] : arguments.as_object()) {
        REQUIRE(properties.contains(key));
        const auto type = std::string(properties.at(key).at("type").as_string());
        CAPTURE(call.name, std::string(key), type);
        CHECK(value.is_string() == (type == "string"));
        CHECK(value.is_array() == (type == "array"));
        CHECK(value.is_bool() == (type == "boolean"));
        CHECK(value.is_int64() == (type == "integer"));
        ++checked;
      }
    }
  }
}

TEST_CASE("Examples of one generator, and of texts as long as wanted, can be asked for",
          "[runtime][train]") {
  for (uint64_t i = 0; i < 20; ++i) {
    runtime::ExampleOptions options{3, true, &documents()};
    options.source = runtime::TextSource::kLookup;
    options.lookup_bytes = 20'000;
    const Example example = runtime::make_example(options, i);
    CHECK(example.source == runtime::TextSource::kLookup);
    const size_t bytes = example.prompt.messages.back().content.size();
    CHECK(bytes > 10'000);
    CHECK(bytes < 25'000);
  }
}
