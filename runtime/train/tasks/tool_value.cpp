#include "runtime/train/tasks/tool_value.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cctype>
#include <charconv>
#include <map>

#include "kernels/base/verify.hpp"
#include "runtime/canonical_json.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    out.emplace_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

int to_int(const std::string& text) {
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  VERIFY(result.ec == std::errc());
  return value;
}

ToolValue text_value(std::string text) { return {json::value(text), text, {{"type", "string"}}}; }

std::string two_digits(int number) { return (number < 10 ? "0" : "") + std::to_string(number); }

std::string lower(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

std::string make_sentence(TaskWords& words) {
  return phrase(
      words.random(),
      "[{who} is in the {place}|See you on {day}|I will be in {city} on {day}|Please bring the "
      "{thing}|The {thing} is {adjective}|Do not forget the {thing}|We meet in the {place} at "
      "noon|{who} likes {food}|The {animal} is {colour}, not {other}|Can you send me the "
      "{thing}?|Thank you for the {adjective} {thing}|I have a question about {topic}|"
      "{food}, {thing} and {animal}|Hello {who}]",
      {{"who", words.one(WordList::kPeople)},
       {"place", words.one(WordList::kPlaces)},
       {"day", words.one(WordList::kWeekdays)},
       {"city", words.one(WordList::kCities)},
       {"thing", words.one(WordList::kThings)},
       {"adjective", words.one(WordList::kAdjectives)},
       {"food", words.one(WordList::kFoods)},
       {"animal", words.one(WordList::kAnimals)},
       {"colour", words.one(WordList::kColours)},
       {"other", words.one(WordList::kColours)},
       {"topic", words.one(WordList::kTopics)}});
}

// Words and strings of a certain look.
std::string make_text(TaskWords& words, std::string_view kind) {
  TaskRandom& random = words.random();
  static const std::map<std::string_view, WordList> kWords{
      {"city", WordList::kCities},      {"person", WordList::kPeople},
      {"food", WordList::kFoods},       {"thing", WordList::kThings},
      {"place", WordList::kPlaces},     {"colour", WordList::kColours},
      {"topic", WordList::kTopics},     {"language", WordList::kLanguages},
      {"weekday", WordList::kWeekdays}, {"animal", WordList::kAnimals}};
  if (const auto found = kWords.find(kind); found != kWords.end()) return words.one(found->second);
  if (kind == "name") return words.made_up(random.between(2, 3));
  if (kind == "title") return words.title();
  if (kind == "code") return words.code();
  if (kind == "time")
    return two_digits(random.between(0, 23)) + ":" + two_digits(random.between(0, 11) * 5);
  if (kind == "date") {
    return std::to_string(random.between(2020, 2035)) + "-" + two_digits(random.between(1, 12)) +
           "-" + two_digits(random.between(1, 28));
  }
  if (kind == "email") {
    return phrase(
        random, "{who}[|.{name}]@{name}.[org|com|net|de]",
        {{"who", random.percent(50) ? words.made_up(2) : lower(words.one(WordList::kPeople))},
         {"name", words.made_up(2)}});
  }
  if (kind == "url") {
    return phrase(random, "https://{name}.[org|com|net]/{part}[|.html|/{name}]",
                  {{"name", words.made_up(2)}, {"part", words.one(WordList::kFields)}});
  }
  if (kind == "path") {
    return "/" + words.one(WordList::kFields) + "/" + words.made_up(2) +
           random.pick(std::array<std::string_view, 4>{".txt", ".csv", ".md", ".json"}).data();
  }
  if (kind == "currency")
    return std::string(
        random.pick(std::array<std::string_view, 6>{"EUR", "USD", "GBP", "JPY", "CHF", "SEK"}));
  VERIFY(kind == "sentence");
  return make_sentence(words);
}

ToolValue make_number(TaskRandom& random, const std::vector<std::string>& parts) {
  if (parts[0] == "integer") {
    const int low = parts.size() > 1 ? to_int(parts[1]) : 0;
    static constexpr std::array<int, 5> kHighs{9, 99, 999, 9999, 999999};
    const int high = parts.size() > 2 ? to_int(parts[2]) : random.pick(kHighs);
    const int value = random.between(low, high);
    return {value, std::to_string(value), {{"type", "integer"}}};
  }
  const int tenths = random.between(1, parts.size() > 1 ? to_int(parts[1]) * 10 : 1000);
  const double value = tenths % 10 == 0 ? tenths / 10 + 0.5 : tenths / 10.0;
  return {value, json_number(value), {{"type", "number"}}};
}

ToolValue make_list(TaskWords& words, const std::vector<std::string>& parts) {
  TaskRandom& random = words.random();
  const bool numbers = parts[0] == "integers";
  json::array list;
  std::vector<std::string> spoken;
  for (int i = random.between(2, 4); i > 0; --i) {
    if (numbers) {
      const int value = random.between(1, 99);
      list.emplace_back(value);
      spoken.push_back(std::to_string(value));
      continue;
    }
    std::string item = make_text(words, parts.size() > 1 ? parts[1] : "thing");
    if (std::find(spoken.begin(), spoken.end(), item) != spoken.end()) continue;
    list.emplace_back(item);
    spoken.push_back(std::move(item));
  }
  return {list,
          enumeration(spoken),
          {{"type", "array"}, {"items", {{"type", numbers ? "integer" : "string"}}}}};
}

}  // namespace

ToolValue make_tool_value(TaskWords& words, std::string_view kind) {
  TaskRandom& random = words.random();
  const auto parts = split(kind, ' ');
  if (parts[0] == "integer" || parts[0] == "number") return make_number(random, parts);
  if (parts[0] == "strings" || parts[0] == "integers") return make_list(words, parts);
  if (parts[0] == "boolean") {
    const bool value = random.percent(50);
    return {value, value ? "true" : "false", {{"type", "boolean"}}};
  }
  if (parts[0] == "choice") {
    const auto choices = split(parts[1], ',');
    ToolValue out = text_value(random.pick(choices));
    out.schema["enum"] = json::array(choices.begin(), choices.end());
    return out;
  }
  return text_value(make_text(words, kind));
}

std::string_view some_tool_value_kind(TaskRandom& random) {
  static constexpr std::array<std::string_view, 25> kKinds{
      "name",    "name",        "title",        "code",          "city",
      "person",  "thing",       "colour",       "date",          "time",
      "email",   "url",         "path",         "sentence",      "integer",
      "integer", "integer 1 9", "number",       "number 10",     "boolean",
      "boolean", "integers",    "strings name", "strings thing", "choice low,medium,high"};
  return random.pick(kKinds);
}

}  // namespace runtime
