#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/toml_fields.hpp"

using Catch::Matchers::Equals;
using runtime::TomlFields;

namespace {

std::string complaint(std::string_view toml, const std::function<void(TomlFields&)>& read) {
  try {
    TomlFields fields = TomlFields::parse(toml, "x.toml");
    read(fields);
    fields.finish();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("TOML fields of every kind are read, and absent ones keep what they are", "[toml]") {
  TomlFields in = TomlFields::parse(
      "name = 'a'\nfiles = ['b', 'c']\nalone = 'd'\non = true\nshare = 0.5\nwhole = 7\n"
      "mode = 'fast'\n[table]\nx = 1\n[[row]]\ny = 2\n[[row]]\ny = 3\n",
      "x.toml");
  std::string name, missing = "kept";
  std::vector<std::string> files, alone;
  bool on = false;
  double share = 0;
  uint32_t whole = 0, x = 0;
  int mode = 0;
  std::vector<uint32_t> rows;
  in.text("name", name);
  in.text("missing", missing);
  in.texts("files", files);
  in.texts("alone", alone);
  in.flag("on", on);
  in.number("share", share, 0, 1);
  in.whole("whole", whole, 0, 10);
  in.one_of("mode", mode, {"slow", "fast"});
  in.table("table", [&](TomlFields& table) { table.whole("x", x, 0, 10); });
  in.tables("row", [&](TomlFields& row) {
    rows.emplace_back();
    row.whole("y", rows.back(), 0, 10);
  });
  in.finish();
  CHECK(name == "a");
  CHECK(missing == "kept");
  CHECK(files == std::vector<std::string>{"b", "c"});
  CHECK(alone == std::vector<std::string>{"d"});
  CHECK(on);
  CHECK(share == 0.5);
  CHECK(whole == 7);
  CHECK(mode == 1);
  CHECK(x == 1);
  CHECK(rows == std::vector<uint32_t>{2, 3});
}

TEST_CASE("A bad TOML field is named with what would be right", "[toml]") {
  struct Case {
    const char* toml;
    std::function<void(TomlFields&)> read;
    const char* message;
  };
  double number = 0;
  uint32_t whole = 0;
  std::string text;
  bool flag = false;
  int place = 0;
  std::vector<std::string> texts;
  const auto nothing = [](TomlFields&) {};
  const std::vector<Case> cases{
      {"a = ", nothing, "x.toml:1: Error while parsing key-value pair: encountered end-of-file"},
      {"a = 1", [&](auto& in) { in.text("a", text); }, "x.toml: a is no text; expected one in quotes"},
      {"a = 'b'", [&](auto& in) { in.flag("a", flag); }, "x.toml: a is neither true nor false"},
      {"a = 2", [&](auto& in) { in.number("a", number, 0, 1); },
       "x.toml: a is 2; expected a number from 0 to 1"},
      {"a = 'b'", [&](auto& in) { in.number("a", number, 0, 1); },
       "x.toml: a is no number; expected a number from 0 to 1"},
      {"a = nan", [&](auto& in) { in.number("a", number, 0, 1); },
       "x.toml: a is nan; expected a number from 0 to 1"},
      {"a = -1", [&](auto& in) { in.whole("a", whole, 0, 9); },
       "x.toml: a is -1; expected a whole number from 0 to 9"},
      {"a = 1.5", [&](auto& in) { in.whole("a", whole, 0, 9); },
       "x.toml: a is no whole number; expected a whole number from 0 to 9"},
      {"a = 'c'", [&](auto& in) { in.one_of("a", place, {"b", "d"}); },
       "x.toml: a is \"c\"; expected one of \"b\", \"d\""},
      {"a = [1]", [&](auto& in) { in.texts("a", texts); },
       "x.toml: a holds something else than texts; expected an array of texts"},
      {"a = 1", [&](auto& in) { in.table("a", nothing); }, "x.toml: a is no table"},
      {"a = 1", [&](auto& in) { in.tables("a", nothing); },
       "x.toml: a is no array of tables; expected [[a]]"},
      {"[a]\nb = 1", [&](auto& in) { in.table("a", [&](auto& a) { a.text("c", text); }); },
       "x.toml: a.b is unknown; known are c"},
      {"[[a]]\n[[a]]\nb = 1", [&](auto& in) { in.tables("a", [&](auto& a) { a.text("b", text); }); },
       "x.toml: a[1].b is no text; expected one in quotes"},
      {"", [&](auto& in) { in.require("a", "a number"); }, "x.toml: a is missing; expected a number"},
  };
  for (const Case& one : cases) {
    INFO(one.toml);
    CHECK_THAT(complaint(one.toml, one.read), Equals(one.message));
  }
  CHECK_THROWS_WITH(TomlFields::load("/no/such/file.toml"),
                    "/no/such/file.toml: cannot be read");
}
