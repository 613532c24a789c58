// Small arithmetic with its steps, comparisons, and lists of numbers.
#include <algorithm>
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

std::string text(int number) { return std::to_string(number); }

// The held-out examples never share an operand pair with the others.
bool is_on_side(const TaskWords& words, int a, int b) {
  return ((a * 31 + b * 17) % 7 == 0) == words.held_out();
}

Exchange add_or_subtract(TaskWords& words) {
  TaskRandom& random = words.random();
  const int top = random.percent(50) ? 20 : random.percent(70) ? 99 : 999;
  int a = 0, b = 0;
  do {
    a = random.between(0, top);
    b = random.between(0, top);
  } while (!is_on_side(words, a, b));
  const bool plus = random.percent(60);
  if (!plus && a < b) std::swap(a, b);
  const int result = plus ? a + b : a - b;
  std::string steps = text(a) + (plus ? " + " : " - ") + text(b);
  if (b >= 10) {  // the ones and the rest, one after the other
    const int ones = b % 10, rest = b - ones, middle = plus ? a + rest : a - rest;
    steps += ": " + text(a) + (plus ? " + " : " - ") + text(rest) + " = " + text(middle) + ", " +
             text(middle) + (plus ? " + " : " - ") + text(ones) + " = " + text(result) + ".";
  } else {
    steps += " = " + text(result) + ".";
  }
  return question(
      phrase(random,
             plus ? "[What is {a} + {b}?|What is {a} plus {b}?|Add {a} and {b}.|How much is {a} + "
                    "{b}?|{a} + {b} = ?]"
                  : "[What is {a} - {b}?|What is {a} minus {b}?|Subtract {b} from {a}.|How much is "
                    "{a} - {b}?|{a} - {b} = ?]",
             {{"a", text(a)}, {"b", text(b)}}),
      {steps,
       phrase(random,
              plus ? "[{r}|{a} + {b} = {r}|The answer is {r}.]"
                   : "[{r}|{a} - {b} = {r}|The answer is {r}.]",
              {{"a", text(a)}, {"b", text(b)}, {"r", text(result)}}),
       text(result)});
}

Exchange multiply(TaskWords& words) {
  TaskRandom& random = words.random();
  int a = 0, b = 0;
  do {
    a = random.between(0, 12);
    b = random.between(0, random.percent(80) ? 10 : 30);
  } while (!is_on_side(words, a, b));
  const std::string r = text(a * b);
  std::string steps = text(a) + " * " + text(b) + " = " + r + ".";
  if (b > 10) {
    steps = text(a) + " * " + text(b / 10 * 10) + " = " + text(a * (b / 10 * 10)) + ", " + text(a) +
            " * " + text(b % 10) + " = " + text(a * (b % 10)) + ", together " + r + ".";
  }
  return question(phrase(random,
                         "[What is {a} * {b}?|What is {a} times {b}?|Multiply {a} by {b}.|How "
                         "much is {a} times {b}?]",
                         {{"a", text(a)}, {"b", text(b)}}),
                  {steps,
                   phrase(random, "[{r}|{a} * {b} = {r}|The answer is {r}.]",
                          {{"a", text(a)}, {"b", text(b)}, {"r", r}}),
                   r});
}

Exchange compare(TaskWords& words) {
  TaskRandom& random = words.random();
  int a = 0, b = 0;
  do {
    a = random.between(0, 999);
    b = random.between(0, 999);
  } while (a == b || !is_on_side(words, a, b));
  const bool larger = random.percent(60);
  const std::string r = text(larger ? std::max(a, b) : std::min(a, b));
  return question(phrase(random,
                         "[Which is {w}, {a} or {b}?|Which number is {w}: {a} or {b}?|{a} or "
                         "{b}: which is {w}?]",
                         {{"a", text(a)}, {"b", text(b)}, {"w", larger ? "larger" : "smaller"}}),
                  {text(a) + (a < b ? " < " : " > ") + text(b) + ".",
                   phrase(random, "[{r}|{r} is {w}.|The {w} one is {r}.]",
                          {{"r", r}, {"w", larger ? "larger" : "smaller"}}),
                   r});
}

Exchange list_of_numbers(TaskWords& words) {
  TaskRandom& random = words.random();
  std::vector<int> numbers;
  const int count = random.between(3, 6), top = random.percent(60) ? 20 : 99;
  while (static_cast<int>(numbers.size()) < count) {
    const int n = random.between(1, top);
    if (std::find(numbers.begin(), numbers.end(), n) == numbers.end() &&
        (numbers.size() != 1 || is_on_side(words, numbers[0], n)))
      numbers.push_back(n);
  }
  const auto joined = [](const std::vector<int>& list) {
    std::string out;
    for (const int n : list) out += (out.empty() ? "" : ", ") + text(n);
    return out;
  };
  const std::string list = joined(numbers);
  auto sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  switch (random.between(0, 3)) {
    case 0:
      return question(
          phrase(random, "[Sort these numbers: {l}|Sort {l}.|Put in ascending order: {l}]",
                 {{"l", list}}),
          {"From small to large.", joined(sorted), joined(sorted)});
    case 1: {
      int sum = 0;
      std::string steps;
      for (const int n : numbers) {
        steps += steps.empty() ? text(n) : " + " + text(n) + " = " + text(sum + n);
        sum += n;
      }
      return question(
          phrase(random, "[What is the sum of {l}?|Add up {l}.|Sum: {l}]", {{"l", list}}),
          {steps + ".", phrase(random, "[{s}|The sum is {s}.]", {{"s", text(sum)}}), text(sum)});
    }
    default: {
      const bool largest = random.percent(50);
      const std::string r = text(largest ? sorted.back() : sorted.front());
      return question(phrase(random,
                             "[What is the {w} of {l}?|Which is the {w} number: {l}?|Find the {w} "
                             "number in this list: {l}]",
                             {{"l", list}, {"w", largest ? "largest" : "smallest"}}),
                      {"In order: " + joined(sorted) + ".",
                       phrase(random, "[{r}|The {w} is {r}.]",
                              {{"r", r}, {"w", largest ? "largest" : "smallest"}}),
                       r});
    }
  }
}

// "Anna has 3 pears and buys 4 more."
Exchange story(TaskWords& words) {
  TaskRandom& random = words.random();
  int a = 0, b = 0;
  do {
    a = random.between(2, 30);
    b = random.between(1, 20);
  } while (!is_on_side(words, a, b));
  const bool more = random.percent(50);
  if (!more && a < b) std::swap(a, b);
  const std::string r = text(more ? a + b : a - b);
  const Slots slots{{"who", words.one(WordList::kPeople)},
                    {"thing", words.one(WordList::kThings)},
                    {"a", text(a)},
                    {"b", text(b)},
                    {"r", r}};
  return question(
      phrase(
          random,
          more ? "{who} has {a} of one kind of {thing} and [buys|finds|gets] {b} more. How many "
                 "does "
                 "{who} have now?"
               : "{who} has {a} of one kind of {thing} and [sells|loses|gives away] {b}. How many "
                 "are left?",
          slots),
      {phrase(random, more ? "{a} + {b} = {r}." : "{a} - {b} = {r}.", slots),
       phrase(random, "[{r}|{who} has {r}.]", slots), r});
}

Exchange next_in_sequence(TaskWords& words) {
  TaskRandom& random = words.random();
  int start = 0, step = 0;
  do {
    start = random.between(0, 40);
    step = random.between(1, 10);
  } while (!is_on_side(words, start, step));
  std::string list;
  for (int i = 0; i < 4; ++i) list += (i == 0 ? "" : ", ") + text(start + i * step);
  const std::string r = text(start + 4 * step);
  return question(phrase(random,
                         "[What comes next: {l}?|Continue the sequence: {l}|Which number "
                         "follows {l}?]",
                         {{"l", list}}),
                  {"The step is " + text(step) + ": " + text(start + 3 * step) + " + " +
                       text(step) + " = " + r + ".",
                   r, r});
}

}  // namespace

Exchange number_exchange(TaskWords& words) {
  static constexpr std::array<Exchange (*)(TaskWords&), 7> kTasks{
      add_or_subtract, add_or_subtract, multiply,        compare,
      list_of_numbers, story,           next_in_sequence};
  return words.random().pick(kTasks)(words);
}

}  // namespace runtime
