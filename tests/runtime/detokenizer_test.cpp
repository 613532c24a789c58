#include "runtime/detokenizer.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "tests/support/tokenizer_directory.hpp"

using runtime::Detokenizer;
using runtime::TokenId;

namespace {

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto unit = runtime::next_utf8_unit(text);
    if (unit.kind != runtime::Utf8Unit::Kind::kValid) return false;
    text.remove_prefix(unit.bytes);
  }
  return true;
}

}  // namespace

TEST_CASE("a broken sequence becomes one replacement character per maximal subpart", "[runtime]") {
  struct Example {
    std::string bytes, text;
  };
  const auto example = GENERATE(values<Example>({
      {"plain \xe6\xbc\xa2", "plain \u6f22"},
      {"\xf0\x9f\x98"
       "A",
       "\ufffdA"},
      {"\xf0\x9f\x98", "\ufffd"},
      {"\xe6", "\ufffd"},
      {"\xe0\x80", "\ufffd\ufffd"},  // overlong
      {"\xc0\xaf", "\ufffd\ufffd"},
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},            // a surrogate
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},  // past U+10FFFF
      {"\xf8\x88\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
      {"\xf1\x80\x80\xe1\x80\xc2"
       "b",
       "\ufffd\ufffd\ufffd"
       "b"},
      {"\xef\xbb\xbfx", "\ufeffx"},
      {"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", "\U0010ffff\ud7ff\ue000"},
  }));
  CHECK(runtime::to_valid_utf8(example.bytes) == example.text);
}

TEST_CASE("pieces of text joined are the text of all ids, for any bytes", "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto tokenizer = support::byte_tokenizer();
  const std::string interesting = "a\x80\xbf\xc2\xe0\xed\xf0\xf4\xa0\x9f\x90\x8f\xff";
  for (int round = 0; round < 40; ++round) {
    Detokenizer detokenizer(tokenizer);
    std::string bytes, text;
    for (size_t k = rng() % 60; k > 0; --k) {
      const auto byte = static_cast<uint8_t>(
          rng() % 3 == 0 ? rng() : static_cast<uint8_t>(interesting[rng() % interesting.size()]));
      bytes += static_cast<char>(byte);
      if (rng() % 10 == 0)
        CHECK(detokenizer.push(258).empty());  // special: no text, and no break in the bytes
      const std::string piece = detokenizer.push(byte);
      CHECK(is_valid_utf8(piece));
      text += piece;
    }
    const std::string rest = detokenizer.finish();
    CHECK((rest.empty() || rest == "\ufffd"));
    CHECK(text + rest == runtime::to_valid_utf8(bytes));
    CHECK(detokenizer.finish().empty());
  }
}

TEST_CASE("text appears as soon as a character is complete", "[runtime]") {
  Detokenizer detokenizer(support::byte_tokenizer());
  CHECK(detokenizer.push(0xf0).empty());
  CHECK(detokenizer.push(0x9f).empty());
  CHECK(detokenizer.push(0x98).empty());
  CHECK(detokenizer.push(0x80) == "\U0001f600");
  CHECK(detokenizer.push(0xe6).empty());
  CHECK(detokenizer.push('x') == "\ufffdx");
}

TEST_CASE("special tokens show their names when asked to", "[runtime]") {
  Detokenizer detokenizer(support::byte_tokenizer(), false);
  CHECK(detokenizer.push(259) == "<|open|>");
  CHECK(detokenizer.push(0xe6).empty());
  CHECK(detokenizer.push(261) == "\ufffd<|sep|>");
  CHECK(detokenizer.push(-5).empty());
  CHECK(detokenizer.push(100000).empty());
}
