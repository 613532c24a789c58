// Finding one fact in a long text: what recurrent state and attention must both carry.
#include <algorithm>
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

// Between about 100 and 2000 tokens, short ones more often, unless a length is wanted.
size_t some_length(TaskRandom& random, size_t wanted) {
  if (wanted > 0) return wanted;
  static constexpr std::array<size_t, 8> kBytes{300, 500, 800, 1200, 1800, 2700, 4000, 5600};
  return random.pick(kBytes) + random.below(300);
}

struct Needle {
  std::string sentence, question, value;
};

Needle make_needle(TaskWords& words) {
  TaskRandom& random = words.random();
  static constexpr std::array<std::string_view, 6> kWhat{"code",   "password", "number",
                                                         "colour", "owner",    "place"};
  const size_t what = random.below(kWhat.size());
  const std::string value = what < 2    ? (random.percent(50) ? words.code() : words.made_up(3))
                            : what == 2 ? std::to_string(random.between(100, 99999))
                            : what == 3 ? words.one(WordList::kColours)
                            : what == 4 ? words.one(WordList::kPeople)
                                        : words.one(WordList::kPlaces);
  const std::string key = random.percent(50)   ? capitalised(words.made_up(random.between(2, 3)))
                          : random.percent(50) ? words.one(WordList::kCities)
                                               : "the " + words.one(WordList::kAdjectives) + " " +
                                                     words.one(WordList::kThings);
  const Slots slots{{"what", std::string(kWhat[what])}, {"key", key}, {"value", value}};
  return {phrase(random,
                 "[The {what} of {key} is {value}.|Remember: the {what} of {key} is "
                 "{value}.|Note that {key} has the {what} {value}.|For {key} the {what} is "
                 "{value}.]",
                 slots),
          phrase(random,
                 "[What is the {what} of {key}?|Which {what} does {key} have?|Tell me the "
                 "{what} of {key}.|What was the {what} of {key}?]",
                 slots),
          value};
}

std::string filler_sentence(TaskWords& words) {
  return phrase(
      words.random(),
      "[{who} went to the {place} and saw a {adjective} {thing}.|In {city} there is a "
      "{place} with a {colour} door.|{who} and {other} talked about {topic} in the "
      "{place}.|A {animal} sat beside the {thing} and ate {food}.|On {weekday} the {place} "
      "was {adjective}.|{who} works as a {job} and likes {topic}.|The {thing} was "
      "{adjective}, so {who} bought {food} instead.]",
      {{"who", words.one(WordList::kPeople)},
       {"other", words.one(WordList::kPeople)},
       {"place", words.one(WordList::kPlaces)},
       {"adjective", words.one(WordList::kAdjectives)},
       {"thing", words.one(WordList::kThings)},
       {"city", words.one(WordList::kCities)},
       {"colour", words.one(WordList::kColours)},
       {"topic", words.one(WordList::kTopics)},
       {"animal", words.one(WordList::kAnimals)},
       {"food", words.one(WordList::kFoods)},
       {"weekday", words.one(WordList::kWeekdays)},
       {"job", words.one(WordList::kJobs)}});
}

// Lines that carry no answer: paragraphs of a document from some line on, or made-up sentences.
std::vector<std::string> filler(TaskWords& words, const std::vector<CorpusDocument>& documents,
                                size_t bytes) {
  TaskRandom& random = words.random();
  std::vector<std::string> lines;
  size_t have = 0;
  if (!documents.empty() && random.percent(60)) {
    std::string_view text = random.pick(documents).text;
    if (text.size() > bytes) text.remove_prefix(random.below(text.size() - bytes));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);  // to the start of a line
    while (have < bytes && !text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      if (end > 2 && end < 600) {
        lines.emplace_back(text.substr(0, end - 1));
        have += end;
      }
      text.remove_prefix(end);
    }
  }
  while (have < bytes) {
    std::string line = filler_sentence(words);
    for (int i = random.between(0, 3); i > 0; --i) line += " " + filler_sentence(words);
    have += line.size();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string as_text(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string before_or_after(TaskRandom& random, const std::string& text, const std::string& asked) {
  return random.percent(20) ? asked + "\n\n" + text : text + "\n" + asked;
}

Exchange needle_in_text(TaskWords& words, const LongText& text) {
  TaskRandom& random = words.random();
  auto lines = filler(words, text.documents, some_length(random, text.bytes));
  std::vector<Needle> needles;
  for (int i = random.between(1, 4); i > 0; --i) {
    needles.push_back(make_needle(words));
    const auto place = random.below(lines.size() + 1);
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), needles.back().sentence);
  }
  // The last one asked about: keys may repeat, and then the text would have two answers.
  const Needle& asked = needles.back();
  for (size_t i = 0; i + 1 < needles.size(); ++i) {
    if (needles[i].question == asked.question) std::erase(lines, needles[i].sentence);
  }
  return question(
      before_or_after(random, as_text(lines), asked.question),
      {"The text says: " + asked.sentence,
       phrase(random, "[{v}|It is {v}.|The answer is {v}.]", {{"v", asked.value}}), asked.value});
}

// Many pairs, one asked for.
Exchange table(TaskWords& words, size_t length) {
  TaskRandom& random = words.random();
  // A byte of made-up names is about twice the tokens of a byte of prose.
  const size_t bytes = some_length(random, length) / 2;
  static constexpr std::array<std::string_view, 4> kBetween{": ", " = ", " -> ", " has the code "};
  const std::string_view between = random.pick(kBetween);
  std::vector<std::string> keys, values, lines;
  for (size_t have = 0; have < bytes || keys.size() < 2;) {
    std::string key = words.made_up(random.between(2, 3));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    values.push_back(random.percent(50) ? words.made_up(2)
                                        : std::to_string(random.between(10, 9999)));
    lines.push_back(key + std::string(between) + values.back());
    have += lines.back().size();
    keys.push_back(std::move(key));
  }
  const size_t asked = random.below(keys.size());
  const std::string wanted =
      phrase(random,
             "[What belongs to {k}?|Which value stands beside {k}?|Look up {k}.|What is the value "
             "of {k}?]",
             {{"k", keys[asked]}});
  return question(
      before_or_after(random, as_text(lines), wanted),
      {lines[asked], phrase(random, "[{v}|It is {v}.]", {{"v", values[asked]}}), values[asked]});
}

}  // namespace

Exchange lookup_exchange(TaskWords& words, const LongText& text) {
  const int kind = words.random().between(0, text.bytes > 0 ? 7 : 9);
  if (kind < 5) return needle_in_text(words, text);
  return kind < 8 ? table(words, text.bytes) : list_exchange(words);
}

}  // namespace runtime
