#include "runtime/canonical_json.hpp"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <random>

using runtime::kCompactSortedJson;
using runtime::kSpacedJson;
using runtime::parse_json_node;

namespace {

std::string spaced(const std::string& text) {
  const auto node = parse_json_node(text);
  return node ? write_json(*node, kSpacedJson) : "not JSON";
}

std::string compact(const std::string& text) {
  const auto node = parse_json_node(text);
  return node ? write_json(*node, kCompactSortedJson) : "not JSON";
}

}  // namespace

TEST_CASE("a JSON text is respelled with blanks after separators and its keys in order",
          "[runtime]") {
  struct Example {
    std::string text, canonical;
  };
  const auto example = GENERATE(values<Example>({
      {R"({"units":"c","x":[1,null]})", R"({"units": "c", "x": [1, null]})"},
      {R"( {"b" : true , "a" : { } , "c" : [ ] , "d":[[],{}]} )",
       R"({"b": true, "a": {}, "c": [], "d": [[], {}]})"},
      {R"("\u00e9\u4f60\ud83d\ude00\/")", "\"é你😀/\""},
      {R"("\"\\\b\f\n\r\t\u0001\u001f\u007f")", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
      {R"({"a":1,"b":2,"a":3})",
       R"({"a": 3, "b": 2})"},  // the last value, at the first one's place
      {R"({"":{"":[""]}})", R"({"": {"": [""]}})"},
      {"null", "null"},
  }));
  CHECK(spaced(example.text) == example.canonical);
}

TEST_CASE("numbers are spelled the shortest way that reads back the same", "[runtime]") {
  struct Example {
    std::string text, canonical;
  };
  const auto example = GENERATE(values<Example>({
      {"0", "0"},
      {"-0", "0"},
      {"-17", "-17"},
      {"-0.0", "-0.0"},
      {"0.5", "0.5"},
      {"2.0", "2.0"},
      {"2.50", "2.5"},
      {"1e-5", "1e-05"},
      {"1e-4", "0.0001"},
      {"0.00001234", "1.234e-05"},
      {"1E+16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"1.0e2", "100.0"},
      {"1e22", "1e+22"},
      {"-1.5E-7", "-1.5e-07"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"0.30000000000000004", "0.30000000000000004"},
      {"3.14159265358979323846", "3.141592653589793"},
      {"9007199254740993.0", "9007199254740992.0"},
      {"100000000000000000000.0", "1e+20"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"12345678901234567890123", "12345678901234567890123"},  // no double comes between
      {"1e-400", "0.0"},
      {"1e400", "1e400"},  // too large for a double: as written
  }));
  CHECK(spaced(example.text) == example.canonical);
}

TEST_CASE("any double reads back from its spelling", "[runtime][property]") {
  std::mt19937_64 rng(11);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = rng();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (value - value != 0) continue;
    if (i % 2 == 0)
      value = static_cast<double>(static_cast<int64_t>(rng() % 2'000'000'000'000'000)) / 1000.0;
    const std::string text = runtime::json_number(value);
    REQUIRE(std::strtod(text.c_str(), nullptr) == value);
    REQUIRE(text.find_first_of(".e") != std::string::npos);
    REQUIRE(spaced(text) == text);
  }
}

TEST_CASE("compact JSON sorts the keys of every object by code point", "[runtime]") {
  CHECK(compact(R"({"b": [ {"z": 1, "a": 2} ], "B": 1, "é": 0, "a": {"d": null, "c": "x y"}})") ==
        R"({"B":1,"a":{"c":"x y","d":null},"b":[{"a":2,"z":1}],"é":0})");
  const auto value = boost::json::parse(
      R"({"b": [1.50, 1e-5, -3, 18446744073709551615], "a": "\u00e9", "c": [true, null, {}]})");
  CHECK(write_json(runtime::to_json_node(value), kCompactSortedJson) ==
        R"({"a":"é","b":[1.5,1e-05,-3,18446744073709551615],"c":[true,null,{}]})");
}

TEST_CASE("what is not one JSON value is told apart", "[runtime]") {
  const auto text = GENERATE(values<std::string>(
      {"", " ", "{", "{\"a\":}", "[1,]", "{'a': 1}", "nul", "1 2", "\"a", "\"\n\"", "NaN", "01",
       "\"\xff\"", std::string(101, '[') + std::string(101, ']')}));
  CAPTURE(text);
  CHECK_FALSE(parse_json_node(text).has_value());
  CHECK(parse_json_node(std::string(90, '[') + std::string(90, ']')).has_value());
}
