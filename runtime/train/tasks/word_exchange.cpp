// Work on words and lists: spelling, counting, sorting, reversing, upper case, first and last.
#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

std::string some_word(TaskWords& words) {
  const int kind = words.random().between(0, 3);
  if (kind == 0) return words.made_up(words.random().between(1, 3));
  return words.one(kind == 1   ? WordList::kThings
                   : kind == 2 ? WordList::kFoods
                               : WordList::kAnimals);
}

std::string spelt(std::string_view word, std::string_view between = "-") {
  std::string out;
  for (const char letter : word) {
    if (!out.empty()) out += between;
    out += letter;
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string joined(const std::vector<std::string>& items, std::string_view between = ", ") {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += between;
    out += items[i];
  }
  return out;
}

Exchange spell(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string word = some_word(words), letters = spelt(word);
  return question(phrase(random,
                         "[Spell the word {w}.|How do you spell {w}?|Spell \"{w}\".|Please "
                         "spell {w} letter by letter.]",
                         {{"w", word}}),
                  {"The letters of " + word + " are " + spelt(word, ", ") + ".", letters, letters});
}

Exchange reverse(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string word = some_word(words), back(word.rbegin(), word.rend());
  return question(
      phrase(random,
             "[Reverse the word {w}.|Write {w} backwards.|What is {w} spelled backwards?|"
             "Reverse \"{w}\".]",
             {{"w", word}}),
      {spelt(word) + " backwards is " + spelt(back) + ".", back, back});
}

Exchange change_case(TaskWords& words) {
  TaskRandom& random = words.random();
  std::string text = some_word(words);
  if (random.percent(50)) text = words.title();
  const bool up = random.percent(70);
  const std::string given = up ? text : upper(text), wanted = up ? upper(text) : text;
  return question(
      phrase(random,
             up ? "[Write {t} in upper case.|Put {t} in capital letters.|Upper-case this: "
                  "{t}|Convert \"{t}\" to upper case.]"
                : "[Write {t} in lower case.|Put {t} in small letters.|Lower-case this: "
                  "{t}]",
             {{"t", given}}),
      {phrase(random, "[I change every letter.|Letter by letter.]"), wanted, wanted});
}

Exchange count_letters(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string word = some_word(words);
  if (random.percent(50)) {
    const std::string n = std::to_string(word.size());
    std::string steps;
    for (size_t i = 0; i < word.size(); ++i)
      steps += (i == 0 ? "" : " ") + std::string(1, word[i]) + std::to_string(i + 1);
    return question(
        phrase(random,
               "[How many letters does {w} have?|How long is the word {w}?|Count "
               "the letters of {w}.]",
               {{"w", word}}),
        {steps, phrase(random, "[{w} has {n} letters.|{n}]", {{"w", word}, {"n", n}}), n});
  }
  const char letter = word[random.below(word.size())];
  const std::string n = std::to_string(std::count(word.begin(), word.end(), letter));
  return question(
      phrase(random,
             "[How many times does {l} come in {w}?|How often is the letter {l} in {w}?|"
             "Count the letter {l} in the word {w}.]",
             {{"w", word}, {"l", std::string(1, letter)}}),
      {spelt(word) + ": " + n + " times " + std::string(1, letter) + ".", n, n});
}

Exchange first_or_last(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string word = some_word(words);
  const bool first = random.percent(50);
  const std::string letter(1, first ? word.front() : word.back());
  return question(phrase(random,
                         "[What is the {which} letter of {w}?|Which letter comes {which} in "
                         "{w}?|Give me the {which} letter of {w}.]",
                         {{"w", word}, {"which", first ? "first" : "last"}}),
                  {spelt(word), letter, letter});
}

std::vector<std::string> some_list(TaskWords& words) {
  static constexpr std::array kKinds{WordList::kAnimals, WordList::kFoods, WordList::kThings,
                                     WordList::kPeople, WordList::kCities};
  TaskRandom& random = words.random();
  return words.some(random.pick(kKinds), static_cast<size_t>(random.between(3, 7)));
}

// Sorting and reversing a list, or leaving out a word.
Exchange change_list(TaskWords& words) {
  TaskRandom& random = words.random();
  auto items = some_list(words);
  const Slots slots{{"l", joined(items)}, {"w", random.pick(items)}};
  std::string asked, reasoning;
  switch (random.between(0, 2)) {
    case 0:
      asked = phrase(random,
                     "[Sort alphabetically: {l}|Sort these words: {l}|Put this list in "
                     "alphabetical order: {l}|Sort {l}.]",
                     slots);
      std::sort(items.begin(), items.end());
      reasoning = "In order of the letters: " + joined(items) + ".";
      break;
    case 1:
      asked = phrase(random,
                     "[Reverse this list: {l}|Write this list backwards: {l}|List in reverse "
                     "order: {l}]",
                     slots);
      std::reverse(items.begin(), items.end());
      reasoning = "From the last to the first.";
      break;
    default:
      asked = phrase(random, "[Remove {w} from this list: {l}|Delete {w}: {l}|Leave out {w}: {l}]",
                     slots);
      std::erase(items, slots.find("w")->second);
      reasoning = phrase(random, "Without {w}.", slots);
  }
  const std::string out = joined(items);
  return question(asked, {reasoning, out, out});
}

Exchange count_list(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto items = some_list(words);
  const std::string n = std::to_string(items.size());
  std::string steps;
  for (size_t i = 0; i < items.size(); ++i)
    steps += (i == 0 ? "" : ", ") + items[i] + " " + std::to_string(i + 1);
  return question(phrase(random,
                         "[How many items are in this list: {l}?|Count the words: {l}|How many "
                         "words are these: {l}?]",
                         {{"l", joined(items)}}),
                  {steps + ".", phrase(random, "[{n}|There are {n}.|{n} items.]", {{"n", n}}), n});
}

Exchange pick_from_list(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto items = some_list(words);
  static constexpr std::array<std::string_view, 4> kPlaces{"first", "second", "third", "last"};
  const size_t place = random.below(4);
  const std::string which(kPlaces[place]), item = place == 3 ? items.back() : items[place];
  return question(phrase(random,
                         "[What is the {p} item of this list: {l}?|{l}: which one is the {p}?|"
                         "Give me the {p} word of {l}.]",
                         {{"l", joined(items)}, {"p", which}}),
                  {"The " + which + " is " + item + ".", item, item});
}

Exchange bullet_points(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto items = some_list(words);
  return question(phrase(random,
                         "[Make a bulleted list of {l}.|Write as a list: {l}|Turn this into "
                         "bullet points: {l}]",
                         {{"l", joined(items)}}),
                  {"One line for each.", "- " + joined(items, "\n- "), items.back()});
}

Exchange repeat(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string text = random.percent(50) ? words.title() + " " + words.made_up(3)
                                              : words.code() + " " + words.made_up(2);
  return question(phrase(random,
                         "[Repeat exactly: {t}|Copy this: {t}|Say exactly this: {t}|Write "
                         "back the following text: {t}]",
                         {{"t", text}}),
                  {phrase(random, "[I copy the text.|The text stays as it is.]"), text, text});
}

}  // namespace

Exchange word_exchange(TaskWords& words) {
  static constexpr std::array<Exchange (*)(TaskWords&), 11> kTasks{
      spell,       reverse,    change_case,    count_letters, first_or_last, change_list,
      change_list, count_list, pick_from_list, bullet_points, repeat};
  return words.random().pick(kTasks)(words);
}

}  // namespace runtime
