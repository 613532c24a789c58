#include "runtime/pretokenizer.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "runtime/utf8.hpp"

using runtime::Pretokenizer;

namespace {

using Pieces = std::vector<std::string>;

Pieces split(const Pretokenizer& pretokenizer, const std::string& text) {
  std::vector<std::string_view> views;
  pretokenizer.split(text, views);
  return Pieces(views.begin(), views.end());
}

std::string join(const Pieces& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

size_t characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(runtime::next_utf8_unit(text).bytes);
  return count;
}

}  // namespace

TEST_CASE("text is cut where the pattern says", "[runtime]") {
  struct Example {
    std::string text;
    Pieces pieces;
  };
  const auto example = GENERATE(values<Example>({
      {"", {}},
      {"Hello world's  test", {"Hello", " world's", " ", " test"}},
      {"CamelCase HTTPServer", {"Camel", "Case", " HTTPServer"}},
      {"DON'T I'LL we've 'quoted'", {"DON'T", " I'LL", " we've", " '", "quoted", "'"}},
      {"12345 678", {"123", "45", " ", "678"}},
      {"x!!!\n\ny", {"x", "!!!\n\n", "y"}},
      {"a\n\n b", {"a", "\n\n", " b"}},
      {"foo   \n  bar", {"foo", "   \n", " ", " bar"}},
      {"end  ", {"end", "  "}},
      {"\tfoo \r\n", {"\tfoo", " \r\n"}},
      {"你好world", {"你好", "world"}},
      {"漢字かな", {"漢字", "かな"}},
      {"人々", {"人々"}},                        // an iteration mark is Han
      {"、你", {"、", "你"}},                    // shared punctuation is not
      {"〇一", {"〇一"}},                        // a Han number
      {"e\u0301te\u0301", {"e\u0301te\u0301"}},  // marks belong to their word
      {"\u00a0x", {"\u00a0x"}},
      {"a\u3000\u3000b", {"a", "\u3000", "\u3000b"}},
      {"a\u180e", {"a", "\u180e"}},  // no white space since Unicode 6.3
      {"(x) -> {y}", {"(x", ")", " ->", " {", "y", "}"}},
      {"😀😀 ok", {"😀😀", " ok"}},
      {"ǅungla", {"ǅungla"}},  // a title-case letter
  }));
  CAPTURE(example.text);
  CHECK(split(Pretokenizer(), example.text) == example.pieces);
}

TEST_CASE("pieces joined are the text, whatever it holds", "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const std::vector<std::string> alphabet{
      "a",       "B",      " ",      "\n", "\r",     "\t",     "1",
      "'s",      "'",      "!",      "漢", "か",     "々",     "é",
      "e\u0301", "\u00a0", "\u3000", "😀",  "\u180e", "\u0378", std::string(1, '\0'),
      "\x1c"};
  const Pretokenizer whole, cut(Pretokenizer::Limits{11, 3});
  for (int round = 0; round < 30; ++round) {
    std::string text;
    for (size_t k = rng() % 60; k > 0; --k) text += alphabet[rng() % alphabet.size()];
    CHECK(join(split(whole, text)) == text);
    const Pieces pieces = split(cut, text);
    CHECK(join(pieces) == text);
    for (const std::string& piece : pieces) CHECK(characters(piece) <= 11);
  }
}

TEST_CASE("long runs are cut at the limit and counted afresh after it", "[runtime]") {
  const Pretokenizer cut(Pretokenizer::Limits{100, 4});
  CHECK(split(cut, "abcdefghij") == Pieces{"abcd", "efgh", "ij"});
  CHECK(split(cut, "ab         cd") == Pieces{"ab", "    ", "    ", " cd"});
  CHECK(split(Pretokenizer(Pretokenizer::Limits{6, 4}), "abcdefghij") ==
        Pieces{"abcd", "ef", "ghij"});
}

TEST_CASE("a million characters of one kind are cut and come back whole", "[runtime]") {
  const std::string unit = GENERATE(
      values<std::string>({"a", "A", " ", "\n", "!", "1", "漢", "\u0301", "か", "A\u0301", " a"}));
  CAPTURE(unit);
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += unit;
  const Pieces pieces = split(Pretokenizer(), text);
  CHECK(join(pieces) == text);
  for (const std::string& piece : pieces) REQUIRE(characters(piece) <= 25'000);
}
