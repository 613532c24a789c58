#include "runtime/utf8.hpp"

#include <catch2/catch.hpp>

using runtime::code_point_prefix;
using runtime::count_code_points;
using runtime::find_invalid_utf8;

TEST_CASE("The first byte that is not UTF-8 is found", "[runtime][utf8]") {
  CHECK(find_invalid_utf8("") == std::string_view::npos);
  CHECK(find_invalid_utf8("h\u00e9 \U0001F600") == std::string_view::npos);
  CHECK(find_invalid_utf8("ab\xff") == 2);
  CHECK(find_invalid_utf8("\u00e9\xed\xa0\x80") == 2);  // a surrogate
  CHECK(find_invalid_utf8("a\xe2\x82") == 1);           // cut off
}

TEST_CASE("A prefix is cut between code points and counted in them", "[runtime][utf8]") {
  const std::string_view text = "h\u00e9\U0001F600x";
  CHECK(count_code_points(text) == 4);
  CHECK(code_point_prefix(text, 0).empty());
  CHECK(code_point_prefix(text, 2) == "h\u00e9");
  CHECK(code_point_prefix(text, 3) == "h\u00e9\U0001F600");
  CHECK(code_point_prefix(text, 9) == text);
}
