// Questions that no text answers: what things are, what comes next, opposites, plurals.
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

struct Known {
  std::string_view what, is;  // "Python", "is a programming language"
};

constexpr std::array<Known, 30> kThings{{
    {"Sluice",
     "is a server for hybrid language models. It is written in C++ as a system of actors"},
    {"SQLite", "is a small database engine that keeps a whole database in one file"},
    {"PostgreSQL", "is a database server that speaks SQL and is free software"},
    {"Python", "is a programming language that is easy to read"},
    {"C++", "is a programming language for fast programs"},
    {"SQL", "is a language for asking and changing databases"},
    {"HTML", "is the language that web pages are written in"},
    {"JSON", "is a text format for data: objects, lists, strings, numbers, true, false and null"},
    {"a database", "is a place where a program keeps data and finds it again"},
    {"a table", "is a list of rows in a database, each with the same columns"},
    {"an index", "is a sorted copy of a column that makes a database find rows fast"},
    {"a file", "is a named piece of data on a disk"},
    {"a function", "is a piece of a program that has a name and can be called"},
    {"a list", "is a sequence of items in some order"},
    {"a string", "is a sequence of characters"},
    {"a loop", "is a part of a program that runs again and again"},
    {"a variable", "is a name for a value in a program"},
    {"a server", "is a program that answers requests of other programs"},
    {"a compiler", "is a program that turns source text into a program that a machine can run"},
    {"a bug", "is a mistake in a program"},
    {"a token", "is a piece of text that a language model reads or writes in one step"},
    {"a language model", "is a program that predicts how a text goes on"},
    {"a tool call", "is a request of a language model to run a function with arguments"},
    {"a prompt", "is the text that a language model is given to answer"},
    {"a hacker", "is someone who enjoys understanding systems in detail"},
    {"a thread", "is a part of a program that runs beside others"},
    {"an actor", "is an object that only it can change and that others send messages to"},
    {"a cache", "is a place for results that may be needed again"},
    {"a week", "is a time of seven days"},
    {"a year", "is a time of twelve months, about 365 days"},
}};

constexpr std::array<std::array<std::string_view, 2>, 30> kOpposites{
    {{"hot", "cold"},   {"big", "small"},     {"old", "young"},      {"fast", "slow"},
     {"high", "low"},   {"open", "closed"},   {"full", "empty"},     {"light", "dark"},
     {"hard", "soft"},  {"wet", "dry"},       {"early", "late"},     {"long", "short"},
     {"rich", "poor"},  {"strong", "weak"},   {"thick", "thin"},     {"wide", "narrow"},
     {"left", "right"}, {"up", "down"},       {"inside", "outside"}, {"first", "last"},
     {"true", "false"}, {"yes", "no"},        {"begin", "end"},      {"buy", "sell"},
     {"day", "night"},  {"summer", "winter"}, {"loud", "quiet"},     {"clean", "dirty"},
     {"love", "hate"},  {"more", "less"}}};

constexpr std::array<std::string_view, 7> kWeekdays{"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                    "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 13> kNumbers{"zero", "one",    "two",   "three", "four",
                                                    "five", "six",    "seven", "eight", "nine",
                                                    "ten",  "eleven", "twelve"};

Exchange what_is(TaskWords& words) {
  TaskRandom& random = words.random();
  const Known& known = random.pick(kThings);
  const std::string what(known.what), is(known.is);
  return question(
      phrase(random,
             "[What is {x}?|What's {x}?|Tell me what {x} is.|Explain what {x} is.|Can you tell "
             "me what {x} is?|Do you know what {x} is?]",
             {{"x", what}}),
      {phrase(random, "[I know this.|The user asks what {x} is.|I explain {x} in a sentence.]",
              {{"x", what}}),
       capitalised(what) + " " + is + ".", is});
}

Exchange opposite(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto& pair = random.pick(kOpposites);
  const size_t side = random.below(2);
  const std::string word(pair[side]), other(pair[1 - side]);
  return question(phrase(random,
                         "[What is the opposite of {w}?|Give me the opposite of {w}.|The "
                         "opposite of \"{w}\"?]",
                         {{"w", word}}),
                  {"The opposite of " + word + " is " + other + ".", capitalised(other) + ".",
                   capitalised(other)});
}

template <size_t N>
Exchange neighbour(TaskRandom& random, const std::array<std::string_view, N>& names,
                   std::string_view kind) {
  const size_t at = random.below(N);
  const bool after = random.percent(60);
  const std::string answer(names[(at + (after ? 1 : N - 1)) % N]);
  const Slots slots{{"name", std::string(names[at])},
                    {"kind", std::string(kind)},
                    {"side", after ? "after" : "before"},
                    {"answer", answer}};
  return question(
      phrase(random,
             "[Which {kind} comes {side} {name}?|What {kind} is {side} {name}?|Name "
             "the {kind} {side} {name}.]",
             slots),
      {phrase(random, "The {kind} {side} {name} is {answer}.", slots),
       phrase(random, "[{answer}.|{answer} comes {side} {name}.|It is {answer}.]", slots), answer});
}

Exchange sequence(TaskWords& words) {
  TaskRandom& random = words.random();
  switch (random.between(0, 3)) {
    case 0:
      return neighbour(random, kWeekdays, "day");
    case 1:
      return neighbour(random, kMonths, "month");
    default: {
      const size_t letter = random.below(25);
      const auto name = [](size_t i) { return std::string(1, static_cast<char>('a' + i)); };
      return question("Which letter comes after " + name(letter) + " in the alphabet?",
                      {"After " + name(letter) + " comes " + name(letter + 1) + ".",
                       name(letter + 1), name(letter + 1)});
    }
  }
}

Exchange number_word(TaskWords& words) {
  TaskRandom& random = words.random();
  const size_t n = random.below(kNumbers.size());
  const std::string digits = std::to_string(n), word(kNumbers[n]);
  if (random.percent(50)) {
    return question(phrase(random,
                           "[Write the number {w} in digits.|Which number is {w}?|{w} as a "
                           "number?]",
                           {{"w", word}}),
                    {word + " is " + digits + ".", digits, digits});
  }
  return question(phrase(random,
                         "[Write {d} in words.|How do you write {d} as a word?|Spell out the "
                         "number {d}.]",
                         {{"d", digits}}),
                  {digits + " is " + word + ".", word, word});
}

Exchange plural(TaskWords& words) {
  TaskRandom& random = words.random();
  std::string word = words.one(WordList::kPlaces);
  for (const std::string_view irregular : {"y", "h", "s", "x", "f", "fe"}) {
    while (word.ends_with(irregular)) word = "garden";
  }
  return question(phrase(random,
                         "[What is the plural of {w}?|One {w}, two ...?|Give me the plural of "
                         "{w}.]",
                         {{"w", word}}),
                  {"One " + word + ", two " + word + "s.", word + "s", word + "s"});
}

}  // namespace

Exchange knowledge_exchange(TaskWords& words) {
  static constexpr std::array<Exchange (*)(TaskWords&), 8> kTasks{
      what_is, what_is, what_is, opposite, sequence, sequence, number_word, plural};
  return words.random().pick(kTasks)(words);
}

}  // namespace runtime
